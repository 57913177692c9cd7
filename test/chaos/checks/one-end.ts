import type { EventType, RotaEvent } from "../../../src/model/event.ts";
import type { AttemptOutcome } from "../../../src/model/task.ts";
import { isTerminal, type TaskState } from "../../../src/model/task-state.ts";
import type { History } from "../history.ts";
import { replay } from "./replay.ts";

const WAITING = ["waiting_dependency", "delayed", "queued", "assigned"] as const;
const RETRIABLE = ["failed", "cancelled"] as const;

/** The states that a task may have when an event reports it. `none`: no event has reported it. */
const BEFORE: Readonly<Record<EventType, readonly (TaskState | "none")[]>> = {
  "task.created": ["none"],
  "task.rejected": ["none"],
  "task.started": WAITING,
  "task.progress": ["running"],
  "task.retrying": ["running", ...RETRIABLE],
  "task.preempted": ["running"],
  "task.completed": ["running"],
  "task.failed": ["running", ...WAITING],
  "task.cancelled": ["running", ...WAITING],
  "batch.completed": ["done", "failed", "cancelled", "rejected"],
};

/** How a task shows an attempt that was taken back before it began. One that a node gave back is not shown. */
const TAKEN_BACK: readonly (AttemptOutcome | null | undefined)[] = ["interrupted", "lost", undefined];

/** Every task ends in one state and stays there unless a client requests a retry; each step follows from the last. */
export function oneEnd({ events, tasks, retriesAsked }: History): string[] {
  const findings: string[] = [];
  const revived = new Map<string, number>();
  const last = new Map<string, TaskState>();
  const begun = new Set<string>();
  const ended = new Set<string>();
  const starts = new Set(
    events.filter(({ type }) => type === "task.started").map(({ taskId, attempt }) => `${taskId} ${attempt}`),
  );
  for (const { event, before } of replay(events)) {
    const { type, taskId, seq, attempt } = event;
    if (type === "task.started") begun.add(`${taskId} ${attempt}`);
    // As far as the log shows, a task waits while it is assigned to a node or a worker that has not begun it: that a delay is over,
    // or a dependency has ended, is no event. If a node gave it back, its next attempt has the same number.
    const shown = tasks.get(taskId)?.attempts[(attempt ?? 0) - 1]?.outcome;
    const isUnbegun =
      type === "task.retrying" &&
      WAITING.some((state) => state === before) &&
      !begun.has(`${taskId} ${attempt}`) &&
      (TAKEN_BACK.includes(shown) || starts.has(`${taskId} ${attempt}`));
    if (!isUnbegun && !isTaken(event, before, ended) && !BEFORE[type].includes(before ?? "none"))
      findings.push(`${taskId}: ${type} (event ${seq}) while it was ${before ?? "not there"}`);
    if (type === "task.retrying" && before !== undefined && isTerminal(before))
      revived.set(taskId, (revived.get(taskId) ?? 0) + 1);
    if (type !== "batch.completed") last.set(taskId, event.state);
    if (type === "task.completed") ended.add(taskId);
  }
  for (const [taskId, times] of revived) {
    const asked = retriesAsked.filter((id) => id === taskId).length;
    if (times > asked)
      findings.push(`${taskId} came back ${times} times after its end, asked for ${asked} times`);
  }
  for (const [taskId, { state }] of tasks) {
    if (!isTerminal(state)) findings.push(`${taskId} has not ended: it is ${state}`);
    if (last.get(taskId) !== state)
      findings.push(`${taskId} is ${state}, and the log says ${last.get(taskId) ?? "nothing of it"}`);
  }
  for (const taskId of last.keys())
    if (!tasks.has(taskId)) findings.push(`${taskId} is in the log and nowhere else`);
  return findings;
}

/** Whether a message is done, without a start, because the task that had taken it was done just before. */
function isTaken(
  { type, result }: RotaEvent,
  before: TaskState | undefined,
  ended: ReadonlySet<string>,
): boolean {
  const { steeredInto = "" } = (result ?? {}) as { steeredInto?: string };
  return type === "task.completed" && before === "queued" && ended.has(steeredInto);
}
