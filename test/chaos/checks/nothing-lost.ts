import { isDeepStrictEqual } from "node:util";
import { type Acknowledgement, type History, markOf } from "../history.ts";
import { deletedSchedules } from "./due-times.ts";
import { byTask } from "./replay.ts";

/** What somebody was told has happened, and is not taken back. */
export function nothingLost(history: History): string[] {
  const events = byTask(history.events);
  const findings: string[] = [];
  for (const told of history.acknowledged) {
    const finding = lost(told, history, events);
    if (finding !== null) findings.push(finding);
  }
  return findings;
}

function lost(told: Acknowledgement, history: History, events: ReturnType<typeof byTask>): string | null {
  if (told.what === "scheduled") {
    return history.schedules.includes(told.scheduleId) || deletedSchedules(history).has(told.scheduleId)
      ? null
      : `schedule ${told.scheduleId} was accepted and is gone`;
  }
  // What is made once more shows in what is told, and not in a task.
  if (told.what === "resent") return null;
  const task = history.tasks.get(told.taskId);
  const types = (events.get(told.taskId) ?? []).map(({ type }) => type);
  if (task === undefined) return `${told.taskId} was acknowledged (${told.what}) and is gone`;
  switch (told.what) {
    case "task":
      if (!types.includes("task.created")) return `${told.taskId} was accepted and the log does not say so`;
      if (markOf(task).marker === told.marker) return null;
      return `${told.taskId} was accepted as ${told.marker} and is ${markOf(task).marker}`;
    case "message":
      if (task.message?.split("\n").includes(told.text)) return null;
      return `"${told.text}" was accepted as ${told.taskId}, which does not say it`;
    case "cancelled":
      return types.includes("task.cancelled")
        ? null
        : `${told.taskId} was cancelled and the log does not say so`;
    case "retried":
      return types.includes("task.retrying")
        ? null
        : `${told.taskId} was retried and the log does not say so`;
    case "ended":
      return takenBack(told, history);
  }
}

/** An end that was told stays, unless somebody asked for a retry. A result that was told stays in any case. */
function takenBack(told: Extract<Acknowledgement, { what: "ended" }>, history: History): string | null {
  if (told.state !== "done" && history.retriesAsked.includes(told.taskId)) return null;
  const task = history.tasks.get(told.taskId);
  if (task?.state !== told.state) return `${told.taskId} was reported as ${told.state} and is ${task?.state}`;
  if (isDeepStrictEqual(task.result, told.result)) return null;
  return `${told.taskId} was told with another result than it has`;
}
