import { isDeepStrictEqual } from "node:util";
import type { RotaEvent } from "../../../src/model/event.ts";
import type { Task } from "../../../src/model/task.ts";
import { isTerminal } from "../../../src/model/task-state.ts";
import type { History } from "../history.ts";
import { replay } from "./replay.ts";

/**
 * A task starts once all it depends on is done, and is handed their results; it is cancelled once one of them has ended
 * otherwise, and names the one that was the cause.
 */
export function dependants(history: History): string[] {
  return [...inTime(history), ...inTheEnd(history), ...handed(history)];
}

function inTime({ events, tasks }: History): string[] {
  const findings: string[] = [];
  const failed = new Set<string>();
  for (const { event, states } of replay(events)) {
    const { type, taskId, state, seq } = event;
    if (type === "task.failed" || type === "task.cancelled" || type === "task.rejected") {
      const cause = causeOf(event);
      if (cause !== null && !failed.has(cause))
        findings.push(`${taskId} was cancelled for "${event.error}", which had not happened (event ${seq})`);
      failed.add(`${taskId} ${state}`);
    }
    if (type !== "task.started") continue;
    for (const parent of tasks.get(taskId)?.dependsOn ?? [])
      if (states.get(parent) !== "done")
        findings.push(
          `${taskId} started while ${parent} was ${states.get(parent) ?? "not there"} (event ${seq})`,
        );
  }
  return findings;
}

/** `tsk_1 failed` of "dependency tsk_1 failed". */
function causeOf({ error }: RotaEvent): string | null {
  return /^dependency (\S+ \w+)$/.exec(error ?? "")?.[1] ?? null;
}

function inTheEnd({ tasks, retriesAsked }: History): string[] {
  const findings: string[] = [];
  for (const task of tasks.values()) {
    const parents = (task.dependsOn ?? []).map((id) => tasks.get(id));
    const bad = parents.find(
      (parent) => parent !== undefined && isTerminal(parent.state) && parent.state !== "done",
    );
    if (bad !== undefined && !["cancelled", "rejected"].includes(task.state))
      findings.push(`${task.taskId} is ${task.state}, and ${bad.taskId}, which it depends on, ${bad.state}`);
    const unfairly = /^dependency /.test(task.error ?? "") && parents.every((parent) => isDone(parent));
    // A parent may have come back after its end, when this one had been cancelled for it.
    if (unfairly && !parents.some((parent) => retriesAsked.includes(parent?.taskId ?? "")))
      findings.push(`${task.taskId} was cancelled ("${task.error}"), though all it depends on is done`);
  }
  return findings;
}

function isDone(task: Task | undefined): boolean {
  return task?.state === "done";
}

function handed({ calls, tasks }: History): string[] {
  const findings: string[] = [];
  for (const { taskId, attempt, dependencies } of calls) {
    const wanted = (tasks.get(taskId)?.dependsOn ?? []).map((id) => ({
      taskId: id,
      result: tasks.get(id)?.result,
    }));
    if (!isDeepStrictEqual(dependencies, wanted))
      findings.push(`${taskId}: attempt ${attempt} was not handed the results of what it depends on`);
  }
  return findings;
}
