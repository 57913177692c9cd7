import type { ScheduledTask, SchedulePreview } from "../../client/index.ts";
import { oneLine, safeLines } from "../terminal/display-text.ts";
import { styled, styledState } from "../terminal/style.ts";
import { momentLines } from "./schedule-preview.ts";
import { nextText } from "./schedule-text.ts";
import { sheetLines } from "./sheet.ts";
import { exactSpan, shownAgo, shownMoment } from "./times.ts";

export interface ScheduleSheetParams {
  /** The next due times; null unless the schedule recurs and is not paused. */
  readonly next: SchedulePreview | null;
  readonly now: number;
}

/** All fields of a schedule, for people. */
export function scheduleSheet(schedule: ScheduledTask, { next, now }: ScheduleSheetParams): string[] {
  const moment = (seconds: number) => shownMoment(seconds * 1_000, now);
  const { last_status, last_error, timeout, useful_for, retry, created_at, updated_at } = schedule;
  const { priority, metadata, max_runs, until, consecutive_failures } = schedule;
  return [
    ...sheetLines([
      ["schedule", String(schedule.id)],
      ["name", textOf(schedule.name)],
      ["status", styledState(schedule.status)],
      ["when", whenText(schedule, next)],
      ["time zone", oneLine(schedule.tz)],
      ["next", schedule.status === "paused" ? pausedText(schedule) : nextText(schedule, now) || undefined],
      ["agent", oneLine(schedule.agent_id)],
      ["message", schedule.message === null ? undefined : safeLines(schedule.message)],
      ["instruction", schedule.instruction === undefined ? undefined : safeLines(schedule.instruction)],
      ["payload", jsonOf(schedule.payload)],
      ["session", sessionText(schedule)],
      ["conversation", textOf(schedule.conversation_id)],
      ["lane", schedule.lane === undefined ? undefined : oneLine(schedule.lane)],
      ["priority", priority === undefined ? undefined : String(priority)],
      ["metadata", jsonOf(metadata)],
      ["callback", schedule.callback_url === undefined ? undefined : oneLine(schedule.callback_url)],
      ["overlap", schedule.overlap],
      ["catch up", schedule.catch_up],
      ["useful for", useful_for === null ? undefined : exactSpan(useful_for * 1_000)],
      ["timeout", timeout === null ? undefined : exactSpan(timeout)],
      ["retries", retriesText(retry)],
      ["then", schedule.delete_after_run ? "deleted, once it has succeeded" : undefined],
      ["at most", max_runs === undefined ? undefined : `${max_runs} ${max_runs === 1 ? "run" : "runs"}`],
      ["until", until === undefined ? undefined : moment(until)],
      ["pauses after", pauseText(schedule)],
      ["created", moment(created_at)],
      ["changed", updated_at === created_at ? undefined : moment(updated_at)],
      ["fired", firedText(schedule, now)],
      ["last end", last_status === null ? undefined : styledState(last_status)],
      ["failures", consecutive_failures === 0 ? undefined : `${consecutive_failures} in a row`],
      ["error", last_error === null ? undefined : styled("red", safeLines(last_error))],
    ]),
    ...(next === null ? [] : ["", ...momentLines(next, now)]),
  ];
}

function sessionText({ session_key, post_to_session }: ScheduledTask): string | undefined {
  const key = textOf(session_key);
  return key === undefined || post_to_session === undefined ? key : `${key}, which gets the answers`;
}

function pausedText({ paused_reason }: ScheduledTask): string {
  return paused_reason === null
    ? "nothing, while it is paused"
    : `nothing, while it is paused: ${oneLine(paused_reason)}`;
}

function pauseText({ pause_after_failures: failures }: ScheduledTask): string | undefined {
  if (failures === undefined) return undefined;
  return failures === 0
    ? "no number of failures"
    : `${failures} failed ${failures === 1 ? "run" : "runs in a row"}`;
}

function jsonOf(value: unknown): string | undefined {
  return value === undefined ? undefined : safeLines(JSON.stringify(value));
}

function textOf(text: string | null): string | undefined {
  return text === null ? undefined : oneLine(text);
}

/** The phrase as written, and as understood if that differs. */
function whenText({ schedule_phrase }: ScheduledTask, next: SchedulePreview | null): string {
  const said = oneLine(schedule_phrase);
  const understood = next === null ? said : oneLine(next.normalized);
  return said.toLowerCase() === understood.toLowerCase() ? said : `${said} (${understood})`;
}

function retriesText({ max_retries, base_delay_ms, max_delay_ms }: ScheduledTask["retry"]): string {
  if (max_retries === 0) return "none";
  return `${max_retries}, after ${exactSpan(base_delay_ms)}, then longer, up to ${exactSpan(max_delay_ms)}`;
}

function firedText({ run_count, last_run_at, last_run_id }: ScheduledTask, now: number): string {
  if (run_count === 0) return "never";
  const times = run_count === 1 ? "once" : `${run_count} times`;
  return `${times}, last ${shownAgo(last_run_at * 1_000, now)} (run ${last_run_id})`;
}
