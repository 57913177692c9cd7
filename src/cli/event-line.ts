import type { RotaEvent } from "../model/event.ts";
import { oneLine } from "./display-text.ts";

/** What an event says besides who and when. */
export function eventText(event: RotaEvent): string {
  const what = event.type.replace(/^task\./, "");
  const details = detailsOf(event);
  return details === "" ? what : `${what}: ${details}`;
}

function detailsOf({ type, attempt, error, retryAt, progress, result }: RotaEvent): string {
  switch (type) {
    case "task.started":
      return attempt === undefined || attempt === 1 ? "" : `attempt ${attempt}`;
    case "task.retrying":
      return oneLine(`${error ?? ""}, again at ${retryAt ?? ""}`);
    case "task.progress":
      return oneLine(JSON.stringify(progress));
    case "task.completed":
      return result === undefined ? "" : oneLine(JSON.stringify(result));
    default:
      return oneLine(error ?? "");
  }
}

/** One line for one event: when, what, which task, whose, and more. */
export function eventLine(event: RotaEvent): string {
  const details = detailsOf(event);
  const words = [event.timestamp, event.type, event.taskId, oneLine(event.agentId), details];
  return words.filter((word) => word !== "").join("  ");
}
