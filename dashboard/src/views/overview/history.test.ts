import { expect, test } from "vitest";
import { axisLabels, lastOf, mostOf, shareDone, sumOf, toHistory } from "./history.ts";

const HISTORY = toHistory({
  from: "2026-11-16T05:00:00Z",
  step: 60,
  series: [
    { key: "", metric: "submitted", points: [1, 2, 0] },
    { key: "", metric: "done", points: [0, 2, 1] },
    { key: "", metric: "waitMs", points: [null, { p50: 5, p95: 9 }, null] },
  ],
});

test("what the server says is sorted by what it counts, and what it does not say is nothing", () => {
  expect(HISTORY).toEqual({
    from: Date.parse("2026-11-16T05:00:00Z"),
    stepMs: 60_000,
    submitted: [1, 2, 0],
    done: [0, 2, 1],
    failed: [],
    tokens: [],
    wait: { p50: [null, 5, null], p95: [null, 9, null] },
    run: { p50: [], p95: [] },
  });
  expect([sumOf(HISTORY.done), mostOf(HISTORY.done, HISTORY.wait.p95), lastOf(HISTORY.wait.p50)]).toEqual([
    3, 9, 5,
  ]);
  expect([lastOf([null]), lastOf([]), lastOf([null, 4]), lastOf([3, null, 0])]).toEqual([null, null, 4, 3]);
});

test.each([
  [0, 0, undefined],
  [10, 0, "100\u00a0%"],
  [99_999, 1, "99.9\u00a0%"],
  [1, 2, "33.3\u00a0%"],
])("%i done and %i failed are a share of %s", (done, failed, share) => {
  expect(shareDone(done, failed)).toBe(share);
});

test("the axis ends now", () => {
  const labels = axisLabels(HISTORY, "1h");
  expect(labels).toHaveLength(7);
  expect(labels.at(-1)).toBe("now");
  expect(labels[0]).toMatch(/^\d\d:00$/);
});
