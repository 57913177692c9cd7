import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { shownSchedule } from "../../../test/support/shown-schedules.ts";
import type { ScheduledTask, SchedulePreview } from "../../client/index.ts";
import { scheduleSheet } from "./schedule-sheet.ts";

const NOW = Date.parse("2026-05-08T07:00:00Z");

function sheet(overrides: Partial<ScheduledTask>, next: SchedulePreview | null = null): string[] {
  const lines = scheduleSheet(shownSchedule(overrides), { next, now: NOW });
  return lines.map((line) => stripVTControlCharacters(line));
}

test("a schedule shows what was said and understood, how it runs, and when it is due", () => {
  const next: SchedulePreview = {
    normalized: "every Mon at 09:00",
    kind: "recurring",
    next: ["2026-05-11T09:00:00+00:00", "2026-05-18T09:00:00+00:00"],
    notes: ["The clock skips."],
  };
  const lines = sheet({ next_fire_at: Date.parse("2026-05-11T09:00:00Z") / 1_000, useful_for: 5_400 }, next);
  for (const line of [
    /^when +every monday at 09:00 \(every Mon at 09:00\)$/,
    /^time zone +UTC$/,
    /^next +in 3 d, Mon 09:00$/,
    /^useful for +90 min$/,
    /^retries +3, after 2 s, then longer, up to 30 s$/,
    /^fired +never$/,
  ]) {
    expect(lines).toContainEqual(expect.stringMatching(line));
  }
  expect(lines.slice(-6)).toEqual([
    "",
    "TIME                       DUE",
    "2026-05-11T09:00:00+00:00  in 3 d, Mon 09:00",
    "2026-05-18T09:00:00+00:00  in 10 d, Mon 2026-05-18 09:00",
    "",
    "The clock skips.",
  ]);
});

test("what was said is not said twice where only its capitals differ", () => {
  const next: SchedulePreview = { normalized: "every Tue at 10:00", kind: "recurring", next: [], notes: [] };
  expect(sheet({ schedule_phrase: "every tue at 10:00" }, next)).toContainEqual(
    expect.stringMatching(/^when +every tue at 10:00$/),
  );
});

test("a schedule shows how often it has fired and what went wrong, and what is safe to show of it", () => {
  const lines = sheet({
    status: "paused",
    message: "two\nlines \u001b[31m",
    run_count: 12,
    last_run_at: NOW / 1_000 - 7_200,
    last_run_id: 42,
    last_status: "failed",
    last_error: "exit code 1",
    retry: { max_retries: 0, base_delay_ms: 2_000, max_delay_ms: 30_000 },
  });
  for (const line of [
    /^next +nothing, while it is paused$/,
    /^message +two$/,
    /^ +lines �\[31m$/,
    /^fired +12 times, last 2 h ago \(run 42\)$/,
    /^last end +failed$/,
    /^error +exit code 1$/,
    /^retries +none$/,
  ]) {
    expect(lines).toContainEqual(expect.stringMatching(line));
  }
});
