import type { RotaEvent } from "../../../src/model/event.ts";
import type { Task } from "../../../src/model/task.ts";
import { type History, type Limits, markOf } from "../history.ts";
import { replay } from "./replay.ts";

/** Something that bounds how much runs at once: its name, and how much. */
interface Bound {
  readonly name: string;
  readonly most: number;
}

/**
 * No limit is exceeded, by what the storage granted: between `task.started` and the event that ends it an attempt counts,
 * wherever it runs and whatever has become of its node. Only what a single node runs at once is its own affair: an attempt
 * that was granted to it in an answer which got lost runs nowhere, and is put back once the node finds out.
 */
export function limits({ events, tasks, calls, limits: given }: History): string[] {
  const called = new Set(calls.map(({ taskId, attempt }) => `${taskId} ${attempt}`));
  const findings: string[] = [];
  const held = new Map<string, readonly Bound[]>();
  const inflight = new Map<string, number>();
  for (const { event, before } of replay(events)) {
    const { taskId, type, seq } = event;
    if (type === "batch.completed") continue;
    if (before === "running" && event.state !== "running") {
      for (const { name } of held.get(taskId) ?? []) inflight.set(name, (inflight.get(name) ?? 0) - 1);
      held.delete(taskId);
    }
    if (type !== "task.started") continue;
    const bounds = boundsOf(event, { task: tasks.get(taskId), called, given });
    held.set(taskId, bounds);
    for (const { name, most } of bounds) {
      const now = (inflight.get(name) ?? 0) + 1;
      inflight.set(name, now);
      if (now > most) findings.push(`${name}: ${now} at once, of ${most} (event ${seq}, ${taskId})`);
    }
  }
  return findings;
}

function boundsOf(
  event: RotaEvent,
  { task, called, given }: { task: Task | undefined; called: ReadonlySet<string>; given: Limits },
): Bound[] {
  const { taskId, tenantId, lane, agentId, sessionKey, batchId, attempt = 1 } = event;
  const bounds: Bound[] = [];
  const bound = (name: string, most: number | undefined) => {
    if (most !== undefined) bounds.push({ name, most });
  };
  const ofLane = given.lanes[lane];
  bound(`lane ${lane}`, ofLane?.total);
  if (called.has(`${taskId} ${attempt}`))
    bound(`lane ${lane} on ${task?.attempts[attempt - 1]?.node}`, ofLane?.perNode);
  bound(`agent ${agentId} in lane ${lane}`, ofLane?.perAgent);
  bound(`agent ${agentId}`, given.agents[agentId]);
  bound(`tenant ${tenantId}`, given.tenants?.[tenantId]);
  if (sessionKey !== undefined) bound(`session ${sessionKey}`, given.sessions[sessionKey] ?? 1);
  if (batchId !== undefined) bound(`batch ${batchId}`, markOf(task).parallelism);
  return bounds;
}
