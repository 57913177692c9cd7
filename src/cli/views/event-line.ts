import type { RotaEvent } from "../../model/event.ts";
import { oneLine } from "../terminal/display-text.ts";

/** The details of an event, without its time, task and agent. */
export function eventText(event: RotaEvent): string {
  const what = event.type.replace(/^task\./, "").replace(".", " ");
  const details = detailsOf(event);
  return details === "" ? what : `${what}: ${details}`;
}

/** The task of an event and its agent. A batch has no agent. */
export function subjectOf({ type, taskId, agentId, batchId = "" }: RotaEvent): { id: string; agent: string } {
  return type === "batch.completed" ? { id: batchId, agent: "" } : { id: taskId, agent: oneLine(agentId) };
}

function detailsOf({ type, attempt, error, retryAt, progress, result, counts = {} }: RotaEvent): string {
  switch (type) {
    case "task.started":
      return attempt === undefined || attempt === 1 ? "" : `attempt ${attempt}`;
    case "task.retrying":
      return oneLine(`${error ?? ""}, again at ${retryAt ?? ""}`);
    case "task.progress":
      return oneLine(JSON.stringify(progress));
    case "task.completed":
      return result === undefined ? "" : oneLine(JSON.stringify(result));
    case "batch.completed":
      return Object.entries(counts)
        .map(([state, count]) => `${count} ${state}`)
        .join(", ");
    default:
      return oneLine(error ?? "");
  }
}

/** One line for one event: time, type, task or batch, agent, details. */
export function eventLine(event: RotaEvent): string {
  const { id, agent } = subjectOf(event);
  const words = [event.timestamp, event.type, id, agent, detailsOf(event)];
  return words.filter((word) => word !== "").join("  ");
}
