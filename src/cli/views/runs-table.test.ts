import { stripVTControlCharacters } from "node:util";
import { expect, test } from "vitest";
import { shownRun } from "../../../test/support/shown-schedules.ts";
import { runSheet } from "./run-sheet.ts";
import { runsTable } from "./runs-table.ts";

const NOW = Date.parse("2026-05-08T12:00:00Z");
const ago = (seconds: number) => NOW / 1_000 - seconds;

const RUNS = [
  shownRun({ id: 12, due_at: ago(5), started_at: ago(5), attempt: 2 }),
  shownRun({
    id: 11,
    due_at: ago(60),
    status: "skipped",
    reason: "the previous run has not ended",
    completed_at: ago(60),
  }),
  shownRun({
    id: 10,
    due_at: ago(3_600),
    started_at: ago(3_600),
    completed_at: ago(3_550),
    status: "succeeded",
    result_summary: "12 pull requests\nwere merged.",
  }),
  shownRun({
    id: 9,
    due_at: ago(7_200),
    started_at: ago(7_200),
    completed_at: ago(7_200),
    status: "failed",
    moments: 3,
    error_message: "exit code 1",
  }),
  shownRun({ id: 8, due_at: ago(90_000), status: "missed", reason: "it came late", moments: 5 }),
];

test("runs are a table with when they were due, how long they took, and what came of them", () => {
  expect(runsTable(RUNS, { now: NOW, width: undefined })).toEqual([
    "RUN  SCHEDULE  STATUS     AGENT     DUE         TOOK  OUTCOME",
    " 12        17  running    research  5 s ago           attempt 2",
    " 11        17  skipped    research  1 min ago         the previous run has not ended",
    " 10        17  succeeded  research  1 h ago     50 s  12 pull requests were merged.",
    "  9        17  failed     research  2 h ago    < 1 s  ✗ for 3 due times: exit code 1",
    "  8        17  missed     research  1 d ago           for 5 due times: it came late",
  ]);
});

test("in a narrow terminal what came of them is cut first", () => {
  expect(runsTable(RUNS.slice(2, 3), { now: NOW, width: 60 })[1]).toBe(
    " 10        17  succeeded  research  1 h ago  50 s  12 pull req…",
  );
});

test("a run shows how late it fired, its task, what it cost and what came of it", () => {
  const run = shownRun({
    due_at: ago(7_200),
    started_at: ago(60),
    completed_at: ago(0),
    status: "failed",
    moments: 3,
    reason: "replaced",
    error_message: "replaced",
    input_tokens: 12,
    output_tokens: 3,
  });
  const lines = runSheet(run, NOW).map((line) => stripVTControlCharacters(line));
  for (const line of [
    /^run +42$/,
    /^schedule +17$/,
    /^due times +3, this being the last of them$/,
    /^fired +.*\(1 min ago\), 1 h late$/,
    /^took +1 min$/,
    /^task +tsk_1$/,
    /^used +12 tokens in, 3 out$/,
    /^error +replaced$/,
  ]) {
    expect(lines).toContainEqual(expect.stringMatching(line));
  }
  // It is said once.
  expect(lines.filter((line) => line.includes("replaced"))).toHaveLength(1);
});

test("a run that never fired shows why, and nothing of what it never had", () => {
  const run = shownRun({
    status: "missed",
    reason: "it came late",
    queue_task_id: null,
    attempt: 0,
    due_at: ago(60),
  });
  const names = runSheet(run, NOW).map((line) => stripVTControlCharacters(line).split(" ")[0]);
  expect(names).toEqual(["run", "schedule", "status", "agent", "due", "reason"]);
});
