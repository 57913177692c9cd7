import { beforeEach, describe, expect, test } from "vitest";
import { VictimWatch } from "./victim-watch.ts";

const ACCEPTED = { status: 202, body: "{}" };
const REFUSED = { status: 429, body: '{"code":"queue_full"}' };

let now: number;
let watch: VictimWatch;

beforeEach(() => {
  now = 100_000;
  watch = new VictimWatch(() => now);
  watch.begin();
});

/** Ends everything a minute after it began. */
function report(runs: Parameters<VictimWatch["report"]>[0]["runs"] = []) {
  return watch.report({ runs, windowEndedAt: 105_000, endedAt: 160_000 });
}

describe("tasks", () => {
  test("are followed from the request to the callback", () => {
    const { number, answered } = watch.submits(true);
    now += 5;
    answered(ACCEPTED);
    expect(watch.isSettled()).toBe(false);
    now += 10;
    watch.started(number);
    now += 20;
    expect(watch.isSettled()).toBe(false);
    watch.calledBack(number, 100_016);
    expect(watch.isSettled()).toBe(true);
    expect(report()).toMatchObject({ submitMs: [5], startMs: [15], callbackMs: [19], refused: 0 });
  });

  test("count with the time until the end for what has not come", () => {
    const unstarted = watch.submits(true);
    unstarted.answered(ACCEPTED);
    watch.submits(false);
    const { number, answered } = watch.submits(true);
    answered(ACCEPTED);
    now += 1_000;
    watch.started(number);
    expect(report()).toMatchObject({
      submitMs: [0, 60_000, 0],
      startMs: [60_000, 1_000],
      callbackMs: [59_000],
    });
  });

  test("that were refused are counted, and not waited for", () => {
    watch.submits(true).answered(REFUSED);
    watch.lists()({ status: 0, body: "" });
    expect(watch.isSettled()).toBe(true);
    expect(report()).toMatchObject({ startMs: [], refused: 2, refusal: '429 {"code":"queue_full"}' });
  });

  test("from before the beginning do not count, whenever their responses come", () => {
    const before = watch.submits(true);
    const listedBefore = watch.lists();
    watch.begin();
    before.answered(REFUSED);
    listedBefore(REFUSED);
    watch.started(before.number);
    expect(report()).toMatchObject({ submitMs: [], listMs: [], startMs: [], refused: 0, refusal: null });
  });

  test("a second attempt or try does not move what the first has shown", () => {
    const { number, answered } = watch.submits(true);
    answered(ACCEPTED);
    watch.started(number);
    watch.calledBack(number, now);
    now += 9_000;
    watch.started(number);
    watch.calledBack(number, 100_000);
    expect(report()).toMatchObject({ startMs: [0], callbackMs: [0] });
  });
});

describe("the schedule", () => {
  test("is late by the time from each due time to the call of the agent", () => {
    now = 100_250;
    watch.runStarted("tsk_a");
    now = 103_000;
    watch.runStarted("tsk_b");
    const runs = [
      { due_at: 102, queue_task_id: "tsk_b" },
      { due_at: 100, queue_task_id: "tsk_a" },
    ];
    expect(report(runs).scheduleMs).toEqual([250, 1_000, 56_000]);
  });

  test("is as late as can be where a due time left no run, or its run never reached the agent", () => {
    const runs = [
      { due_at: 100, queue_task_id: null },
      { due_at: 102, queue_task_id: "tsk_waiting" },
    ];
    expect(report(runs).scheduleMs).toEqual([60_000, 58_000, 56_000]);
  });
});
