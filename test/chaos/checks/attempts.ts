import type { RotaEvent } from "../../../src/model/event.ts";
import type { Attempt, AttemptOutcome, Task } from "../../../src/model/task.ts";
import type { History } from "../history.ts";
import { byTask } from "./replay.ts";

/** How an attempt may have ended, given the event that ended it. */
const OUTCOMES: Readonly<Record<string, readonly AttemptOutcome[]>> = {
  "task.completed": ["done"],
  "task.retrying": ["failed", "interrupted", "lost"],
  "task.preempted": ["preempted"],
  "task.failed": ["failed", "lost", "interrupted"],
  "task.cancelled": ["cancelled"],
};

/** How an attempt may have ended that its worker never began: it was taken back while it was only assigned. */
const UNBEGUN: readonly (AttemptOutcome | null)[] = ["cancelled", "interrupted", "lost", "preempted"];

/** Attempts are granted one after the other: none starts before the one before it has ended or was taken back. */
export function attempts({ events, tasks }: History): string[] {
  const findings: string[] = [];
  const logs = byTask(events);
  for (const task of tasks.values())
    findings.push(...ofTask(task, logs.get(task.taskId) ?? []).map((said) => `${task.taskId}: ${said}`));
  return findings;
}

function ofTask(task: Task, log: readonly RotaEvent[]): string[] {
  const findings: string[] = [];
  const begun = new Set(log.filter(({ type }) => type === "task.started").map(({ attempt }) => attempt));
  let started = 0;
  let live: number | null = null;
  for (const { type, attempt } of log) {
    const next = task.attempts[started];
    if (live === null && type in OUTCOMES && !begun.has(next?.number) && isUnbegun(next, type)) {
      started += 1;
    } else if (type === "task.started") {
      if (live !== null) findings.push(`attempt ${attempt} started while attempt ${live} was live`);
      if (attempt !== started + 1) findings.push(`attempt ${attempt} started after attempt ${started}`);
      started = attempt ?? started + 1;
      live = started;
    } else if (live !== null && type in OUTCOMES) {
      const shown = task.attempts[live - 1];
      if (shown !== undefined && !endedBy(type, shown))
        findings.push(`attempt ${live} ended with ${type}, and shows ${shown.outcome}`);
      live = null;
    }
  }
  if (task.attempts.length !== started)
    findings.push(`${started} attempts were started, and ${task.attempts.length} are shown`);
  for (const { number, endedAt } of task.attempts)
    if (endedAt === null) findings.push(`attempt ${number} has no end`);
  const most = Math.max(task.retryPolicy.maxRetries, task.kind === "message" ? 1 : 0);
  if (task.retryCount > most) findings.push(`was retried ${task.retryCount} times, of ${most}`);
  return findings;
}

/** Whether this event ended an attempt that was assigned to a worker, and that the worker never began. */
function isUnbegun(shown: Attempt | undefined, type: string): boolean {
  return shown !== undefined && UNBEGUN.includes(shown.outcome) && endedBy(type, shown);
}

function endedBy(type: string, { outcome }: Attempt): boolean {
  return outcome !== null && OUTCOMES[type]?.includes(outcome) === true;
}
