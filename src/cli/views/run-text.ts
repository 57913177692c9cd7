import type { Run } from "../../client/index.ts";
import { oneLine } from "../terminal/display-text.ts";
import { shownSpan } from "./times.ts";

/** How long the run took; its times are whole seconds. Empty while it runs, and if it never ran. */
export function tookText({ started_at, completed_at }: Run): string {
  if (started_at === 0 || completed_at === 0) return "";
  const seconds = completed_at - started_at;
  if (seconds < 1) return "< 1 s";
  return seconds < 60 ? `${seconds} s` : shownSpan(seconds * 1_000);
}

/** The outcome, or why there is none, on one line. */
export function outcomeText(run: Run): string {
  const { status, moments } = run;
  const mark = status === "failed" ? "✗ " : "";
  const many = moments > 1 ? `for ${moments} due times: ` : "";
  return oneLine(mark + many + outcomeOf(run));
}

function outcomeOf({ status, attempt, result_summary, error_message, reason }: Run): string {
  switch (status) {
    case "running":
      return attempt > 1 ? `attempt ${attempt}` : "";
    case "succeeded":
      return result_summary ?? "";
    default:
      return error_message ?? reason ?? "";
  }
}
