import type { RotaEvent } from "../../model/event.ts";
import { oneLine } from "../terminal/display-text.ts";

/** What an event says besides who and when. */
export function eventText(event: RotaEvent): string {
  const what = event.type.replace(/^task\./, "").replace(".", " ");
  const details = detailsOf(event);
  return details === "" ? what : `${what}: ${details}`;
}

/** The task that an event tells of, and whose it is; a batch is nobody's. */
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

/** One line for one event: when, what, which task or batch, whose, and more. */
export function eventLine(event: RotaEvent): string {
  const { id, agent } = subjectOf(event);
  const words = [event.timestamp, event.type, id, agent, detailsOf(event)];
  return words.filter((word) => word !== "").join("  ");
}
