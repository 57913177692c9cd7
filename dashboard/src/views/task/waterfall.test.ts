import { expect, test } from "vitest";
import type { Task } from "../../../../src/client/index.ts";
import { stretchesOf, ticksOf } from "./waterfall.ts";

const START = Date.parse("2026-03-08T12:00:00.000Z");
const at = (second: number) => new Date(START + second * 1_000).toISOString();

function task(fields: Partial<Task>): Task {
  return {
    taskId: "tsk_1",
    agentId: "a",
    kind: "message",
    lane: "main",
    priority: 2,
    state: "queued",
    position: 1,
    createdAt: at(0),
    retryPolicy: { maxRetries: 3, backoffMs: 1_000, backoffMultiplier: 2, maxBackoffMs: 60_000, jitter: 0 },
    retryCount: 0,
    attempts: [],
    ...fields,
  };
}

function attempt(
  number: number,
  from: number,
  to: number | null,
  outcome: Task["attempts"][number]["outcome"],
) {
  const error = outcome === "failed" ? "hung up" : null;
  return { number, startedAt: at(from), endedAt: to === null ? null : at(to), outcome, error, node: "n" };
}

/** Each as `name bar from-to`, with `…` for what goes on. */
function shown(given: Task, now: number, since?: number): string[] {
  const stretches = stretchesOf(given, START + now * 1_000, since === undefined ? undefined : at(since));
  return stretches.map(
    ({ name, bar, from, to, isOpen }) =>
      `${name} ${bar} ${(from - START) / 1_000}-${(to - START) / 1_000}${isOpen ? "…" : ""}`,
  );
}

test("waiting, attempts and back-offs follow each other without a gap", () => {
  const attempts = [
    attempt(1, 42, 102, "failed"),
    attempt(2, 117, 155, "failed"),
    attempt(3, 185, 292, "done"),
  ];
  expect(shown(task({ state: "done", attempts, retryCount: 2, completedAt: at(292) }), 1_000)).toEqual([
    "Queued wait 0-42",
    "Attempt 1 fail 42-102",
    "Back-off back 102-117",
    "Attempt 2 fail 117-155",
    "Back-off back 155-185",
    "Attempt 3 ok 185-292",
  ]);
});

test("what goes on is open", () => {
  expect(shown(task({}), 30)).toEqual(["Queued wait 0-30…"]);
  expect(shown(task({ state: "running", attempts: [attempt(1, 5, null, null)] }), 30)).toEqual([
    "Queued wait 0-5",
    "Attempt 1 run 5-30…",
  ]);
  const failed = [attempt(1, 5, 10, "failed")];
  expect(shown(task({ state: "delayed", attempts: failed, retryCount: 1 }), 30)).toEqual([
    "Queued wait 0-5",
    "Attempt 1 fail 5-10",
    "Back-off back 10-30…",
  ]);
});

test("what it waited for before it could start is shown apart", () => {
  expect(shown(task({ state: "waiting_dependency", dependsOn: ["x"] }), 30)).toEqual([
    "Waiting for tasks wait 0-30…",
  ]);
  expect(shown(task({ state: "delayed", runAt: at(90) }), 30)).toEqual(["Not due yet wait 0-30…"]);
  expect(shown(task({ dependsOn: ["x"] }), 192, 36)).toEqual([
    "Waiting for tasks wait 0-36",
    "Queued wait 36-192…",
  ]);
  const ran = [attempt(1, 95, 100, "done")];
  expect(shown(task({ state: "done", runAt: at(90), attempts: ran, completedAt: at(100) }), 500)).toEqual([
    "Not due yet wait 0-90",
    "Queued wait 90-95",
    "Attempt 1 ok 95-100",
  ]);
});

test("one that gave way, or whose node stopped, is queued again", () => {
  const attempts = [
    attempt(1, 0, 10, "preempted"),
    attempt(2, 12, 20, "interrupted"),
    attempt(3, 25, 30, "done"),
  ];
  expect(shown(task({ state: "done", attempts, completedAt: at(30) }), 40)).toEqual([
    "Attempt 1 off 0-10",
    "Queued again wait 10-12",
    "Attempt 2 off 12-20",
    "Queued again wait 20-25",
    "Attempt 3 ok 25-30",
  ]);
});

test("one that never ran waited until it ended", () => {
  expect(shown(task({ state: "cancelled", completedAt: at(7) }), 40)).toEqual(["Queued wait 0-7"]);
});

test("the marks of an axis are at round times, and none is cut at its end", () => {
  const said = (length: number) => ticksOf(length).map(({ at, text }) => `${Math.round(at)} ${text}`);
  expect(said(5_000)).toEqual(["20 +1s", "40 +2s", "60 +3s", "80 +4s"]);
  expect(said(1_380)).toEqual(["36 +0.5s", "72 +1s"]);
  expect(said(83_000)).toEqual(["24 +20s", "48 +40s", "72 +1m"]);
  expect(said(292_000)).toEqual(["21 +1m", "41 +2m", "62 +3m", "82 +4m"]);
  expect(said(26 * 3_600_000)).toEqual(["23 +6h", "46 +12h", "69 +18h"]);
  expect(said(60 * 3_600_000)).toEqual(["20 +12h", "40 +1d", "60 +1d 12h", "80 +2d"]);
  expect(said(205)).toEqual(["24 +50ms", "49 +100ms", "73 +150ms"]);
  expect(said(170)).toEqual(["29 +50ms", "59 +100ms"]);
  expect(said(1)).toEqual([]);
});
