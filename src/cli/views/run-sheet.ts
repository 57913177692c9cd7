import type { Run } from "../../client/index.ts";
import { oneLine, safeLines } from "../terminal/display-text.ts";
import { styled, styledState } from "../terminal/style.ts";
import { tookText } from "./run-text.ts";
import { sheetLines } from "./sheet.ts";
import { shownMoment, wholeSpan } from "./times.ts";

/** All fields of a run, for people. */
export function runSheet(run: Run, now: number): string[] {
  const moment = (seconds: number) => (seconds === 0 ? undefined : shownMoment(seconds * 1_000, now));
  const { reason, error_message: error, result_summary: summary, queue_task_id: task } = run;
  return sheetLines([
    ["run", String(run.id)],
    ["schedule", String(run.task_id)],
    ["status", styledState(run.status)],
    ["agent", oneLine(run.agent_id)],
    ["due", moment(run.due_at)],
    ["due times", run.moments === 1 ? undefined : `${run.moments}, this being the last of them`],
    ["fired", firedText(run, now)],
    ["ended", run.started_at === 0 ? undefined : moment(run.completed_at)],
    ["took", tookText(run) || undefined],
    ["attempts", run.attempt === 0 ? undefined : String(run.attempt)],
    ["task", task ?? undefined],
    ["request", run.request_id ?? undefined],
    ["used", usedText(run)],
    ["reason", reason === null || reason === error ? undefined : oneLine(reason)],
    ["error", error === null ? undefined : styled("red", safeLines(error))],
    ["result", summary === null || summary === "" ? undefined : safeLines(summary)],
  ]);
}

/** When the run fired, and by how much it was late. */
function firedText({ started_at, due_at }: Run, now: number): string | undefined {
  if (started_at === 0) return undefined;
  const late = started_at - due_at;
  return `${shownMoment(started_at * 1_000, now)}${late > 1 ? `, ${wholeSpan(late * 1_000)} late` : ""}`;
}

function usedText({ input_tokens, output_tokens }: Run): string | undefined {
  if (input_tokens === 0 && output_tokens === 0) return undefined;
  return `${input_tokens} tokens in, ${output_tokens} out`;
}
