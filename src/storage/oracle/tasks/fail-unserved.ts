import { noExecutorError } from "../../no-executor-error.ts";
import type { TaskLabels } from "../../storage.ts";
import { isUnserved } from "../connection/abilities.ts";
import { type OracleState, type OracleTask, signal } from "../state.ts";
import { failTask } from "./end-task.ts";
import { preempt } from "./preempt-tasks.ts";
import { settleMoves } from "./settle-moves.ts";

export function failUnserved(
  state: OracleState,
  { afterMs, limit }: { afterMs: number; limit: number },
): { failed: TaskLabels[]; nextAt: number | null } {
  const now = state.clock.now();
  const unserved = state.tasks.filter((task) => task.state === "queued" && isUnserved(state, task));
  const unmarked = unserved.filter(({ unservedAt }) => unservedAt === null);
  for (const task of unmarked.slice(0, limit)) task.unservedAt = now;
  const due = marked(unserved).filter(({ unservedAt }) => (unservedAt ?? now) + afterMs <= now);
  const failing = due.slice(0, limit);
  for (const task of failing) failTask(state, task, noExecutorError(task.agent, task.spec.work.kind));
  settleMoves(state);
  preempt(state);
  if (failing.length > 0) signal(state, { kind: "events" });
  const more = unmarked.length > limit || due.length > limit;
  const [next] = marked(unserved.filter((task) => task.state === "queued"));
  const nextAt = next?.unservedAt == null ? null : next.unservedAt + afterMs;
  return {
    failed: failing.map(({ tenant, agent, lane }) => ({ tenant, agent, lane })),
    nextAt: more ? now : nextAt,
  };
}

/** Tasks that are known to be unserved, the longest first. */
function marked(tasks: readonly OracleTask[]): OracleTask[] {
  return tasks
    .filter(({ unservedAt }) => unservedAt !== null)
    .sort((a, b) => (a.unservedAt ?? 0) - (b.unservedAt ?? 0) || a.seq - b.seq);
}
