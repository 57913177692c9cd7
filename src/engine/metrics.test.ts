import { expect, test } from "vitest";
import { claimedTask } from "../../test/support/records.ts";
import { Metrics } from "./metrics.ts";

test("counts in all and by agent", () => {
  const metrics = new Metrics();
  metrics.submitted("a", { rejected: false });
  metrics.submitted("b", { rejected: true });
  metrics.ended("a", "done");
  metrics.ended("a", "failed");
  metrics.ended("a", "delayed");
  metrics.cancelled("b");
  metrics.expired(2);
  metrics.lost(1);
  expect(metrics.snapshot()).toEqual({
    tasksSubmitted: 1,
    tasksCompleted: 1,
    tasksFailed: 4,
    tasksCancelled: 1,
    tasksRejected: 1,
    tasksExpired: 2,
    dispatchCount: 0,
    avgDispatchLatencyMs: 0,
    agents: {
      a: { submitted: 1, completed: 1, failed: 1, cancelled: 0, rejected: 0 },
      b: { submitted: 0, completed: 0, failed: 0, cancelled: 1, rejected: 1 },
    },
  });
});

test("averages the wait from when a task could start", () => {
  const metrics = new Metrics();
  const attempt = { number: 1, endedAt: null, outcome: null, error: null, node: "n" };
  const begun = (startedAt: number) => [{ ...attempt, startedAt }];
  metrics.dispatched(claimedTask({ createdAt: 100, attempts: begun(110) }).task);
  metrics.dispatched(claimedTask({ createdAt: 100, runAt: 1_000, attempts: begun(1_030) }).task);
  expect(metrics.snapshot()).toMatchObject({ dispatchCount: 2, avgDispatchLatencyMs: 20 });
});

test("a retry waited since its moment; one made by hand waited nobody knows how long", () => {
  const metrics = new Metrics();
  const failed = { number: 1, startedAt: 0, endedAt: 50, outcome: "failed", error: "x", node: "n" } as const;
  const again = { number: 2, startedAt: 1_060, endedAt: null, outcome: null, error: null, node: "n" };
  metrics.dispatched(claimedTask({ runAt: 1_050, attempts: [failed, again] }).task);
  metrics.dispatched(claimedTask({ runAt: null, attempts: [failed, again] }).task);
  expect(metrics.snapshot()).toMatchObject({ dispatchCount: 2, avgDispatchLatencyMs: 10 });
});

test("agents beyond a thousand share a row", () => {
  const metrics = new Metrics();
  for (let i = 0; i < 1_500; i++) metrics.submitted(`agent-${i}`, { rejected: false });
  const { agents, tasksSubmitted } = metrics.snapshot();
  expect(Object.keys(agents)).toHaveLength(1_001);
  expect(agents["other"]?.submitted).toBe(500);
  expect(tasksSubmitted).toBe(1_500);
});
