import { isDeepStrictEqual } from "node:util";
import { type Acknowledgement, type History, markOf } from "../history.ts";
import { deletedSchedules } from "./due-times.ts";
import { byTask } from "./replay.ts";

/** What a server reported has happened, and stays. */
export function nothingLost(history: History): string[] {
  const events = byTask(history.events);
  const findings: string[] = [];
  for (const known of history.acknowledged) {
    const finding = lost(known, history, events);
    if (finding !== null) findings.push(finding);
  }
  return findings;
}

function lost(known: Acknowledgement, history: History, events: ReturnType<typeof byTask>): string | null {
  if (known.what === "scheduled") {
    return history.schedules.includes(known.scheduleId) || deletedSchedules(history).has(known.scheduleId)
      ? null
      : `schedule ${known.scheduleId} was accepted and is gone`;
  }
  // A repeated delivery shows in the requests of the receivers, not in a task.
  if (known.what === "resent") return null;
  const task = history.tasks.get(known.taskId);
  const types = (events.get(known.taskId) ?? []).map(({ type }) => type);
  if (task === undefined) return `${known.taskId} was acknowledged (${known.what}) and is gone`;
  switch (known.what) {
    case "task":
      if (!types.includes("task.created")) return `${known.taskId} was accepted and the log does not say so`;
      if (markOf(task).marker === known.marker) return null;
      return `${known.taskId} was accepted as ${known.marker} and is ${markOf(task).marker}`;
    case "message":
      if (task.message?.split("\n").includes(known.text)) return null;
      return `"${known.text}" was accepted as ${known.taskId}, which does not say it`;
    case "cancelled":
      return types.includes("task.cancelled")
        ? null
        : `${known.taskId} was cancelled and the log does not say so`;
    case "retried":
      return types.includes("task.retrying")
        ? null
        : `${known.taskId} was retried and the log does not say so`;
    case "ended":
      return takenBack(known, history);
  }
}

/** A reported end stays, unless a client requested a retry. A reported result stays in any case. */
function takenBack(known: Extract<Acknowledgement, { what: "ended" }>, history: History): string | null {
  if (known.state !== "done" && history.retriesAsked.includes(known.taskId)) return null;
  const task = history.tasks.get(known.taskId);
  if (task?.state !== known.state)
    return `${known.taskId} was reported as ${known.state} and is ${task?.state}`;
  if (isDeepStrictEqual(task.result, known.result)) return null;
  return `${known.taskId} was reported with another result than it has`;
}
