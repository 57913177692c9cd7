import { expect, test } from "vitest";
import { claimedTask } from "../../../test/support/records.ts";
import { Metrics } from "./metrics.ts";

const LANE = "tasks";
const A = { agent: "a", lane: LANE };
const B = { agent: "b", lane: LANE };

test("counts in all, by agent, and by agent and lane", () => {
  const metrics = new Metrics();
  metrics.submitted(A, { rejected: false });
  metrics.submitted({ ...A, lane: "main" }, { rejected: false });
  metrics.submitted(B, { rejected: true });
  metrics.ended(A, "done");
  metrics.ended(A, "failed");
  metrics.ended(A, "delayed");
  metrics.ended(A, "queued");
  metrics.cancelled(B);
  for (const task of [A, B]) metrics.expired(task);
  metrics.lost(B, "failed");
  for (const task of [A, A]) metrics.lost(task, "queued");
  metrics.preempted(B);
  expect(metrics.snapshot()).toEqual({
    tasksSubmitted: 2,
    tasksCompleted: 1,
    tasksFailed: 4,
    tasksCancelled: 1,
    tasksRejected: 1,
    tasksExpired: 2,
    dispatchCount: 0,
    avgDispatchLatencyMs: 0,
    agents: {
      a: { submitted: 2, completed: 1, failed: 2, cancelled: 0, rejected: 0 },
      b: { submitted: 0, completed: 0, failed: 2, cancelled: 1, rejected: 1 },
    },
  });
  expect(metrics.series()).toMatchObject([
    { labels: A, series: { submitted: 1, completed: 1, failed: 2, expired: 1, retried: 3, cancelled: 0 } },
    { labels: { agent: "a", lane: "main" }, series: { submitted: 1, completed: 0 } },
    { labels: B, series: { rejected: 1, failed: 2, expired: 1, cancelled: 1, retried: 0, preempted: 1 } },
  ]);
});

test("counts tokens and cost by agent, of those that reported them", () => {
  const metrics = new Metrics();
  metrics.submitted(B, { rejected: false });
  metrics.used(A, { inputTokens: 10 });
  metrics.used({ ...A, lane: "main" }, { inputTokens: 5, outputTokens: 2, costMicros: 9 });
  metrics.used(A, { costMicros: 1 });
  expect([...metrics.tokens()]).toEqual([["a", { input: 15, output: 2, costMicros: 10 }]]);
  for (let i = 0; i < 200; i++) metrics.used({ agent: `agent-${i}`, lane: LANE }, { outputTokens: 1 });
  expect(metrics.tokens().size).toBe(100);
  expect(metrics.tokens().get("other")).toEqual({ input: 0, output: 102, costMicros: 0 });
});

test("averages the wait from when a task could start", () => {
  const metrics = new Metrics();
  const attempt = { number: 1, endedAt: null, outcome: null, error: null, node: "n" };
  const begun = (startedAt: number) => [{ ...attempt, startedAt }];
  metrics.dispatched(claimedTask({ createdAt: 100, attempts: begun(110) }).task);
  metrics.dispatched(claimedTask({ createdAt: 100, runAt: 1_000, attempts: begun(1_030) }).task);
  expect(metrics.snapshot()).toMatchObject({ dispatchCount: 2, avgDispatchLatencyMs: 20 });
  expect(metrics.series()[0]?.series).toMatchObject({ started: 2, wait: { sumSec: 0.04 } });
});

test("a retry waited since its moment; a retry that a caller requested has no known waiting time", () => {
  const metrics = new Metrics();
  const failed = { number: 1, startedAt: 0, endedAt: 50, outcome: "failed", error: "x", node: "n" } as const;
  const again = { number: 2, startedAt: 1_060, endedAt: null, outcome: null, error: null, node: "n" };
  metrics.dispatched(claimedTask({ runAt: 1_050, attempts: [failed, again] }).task);
  metrics.dispatched(claimedTask({ runAt: null, attempts: [failed, again] }).task);
  expect(metrics.snapshot()).toMatchObject({ dispatchCount: 2, avgDispatchLatencyMs: 10 });
});

test("the wait of a pre-empted task counts from its pre-emption", () => {
  const metrics = new Metrics();
  const preempted = {
    number: 1,
    startedAt: 0,
    endedAt: 50,
    outcome: "preempted",
    error: "x",
    node: "n",
  } as const;
  const again = { number: 2, startedAt: 90, endedAt: null, outcome: null, error: null, node: "n" };
  metrics.dispatched(claimedTask({ runAt: null, attempts: [preempted, again] }).task);
  expect(metrics.snapshot()).toMatchObject({ dispatchCount: 1, avgDispatchLatencyMs: 40 });
});

test("agents beyond a thousand share a row, and those beyond a hundred a label", () => {
  const metrics = new Metrics();
  for (let i = 0; i < 1_500; i++) {
    metrics.submitted({ agent: `agent-${i}`, lane: LANE }, { rejected: false });
    metrics.ran({ agent: `agent-${i}`, lane: LANE }, 1);
  }
  const { agents, tasksSubmitted } = metrics.snapshot();
  expect(Object.keys(agents)).toHaveLength(1_001);
  expect(agents["other"]?.submitted).toBe(500);
  expect(tasksSubmitted).toBe(1_500);

  const series = metrics.series();
  expect(series.map(({ labels }) => labels["agent"])).toEqual([
    ...Array.from({ length: 100 }, (_, i) => `agent-${i}`),
    "other",
  ]);
  expect(series.at(-1)?.series.submitted).toBe(1_400);
  expect(series.reduce((sum, { series: { submitted } }) => sum + submitted, 0)).toBe(1_500);
});

test("an agent that is called other is counted with the others, and takes no label", () => {
  const metrics = new Metrics();
  metrics.submitted({ agent: "other", lane: LANE }, { rejected: false });
  for (let i = 0; i < 101; i++) metrics.submitted({ agent: `agent-${i}`, lane: LANE }, { rejected: false });
  const labels = metrics.series().map(({ labels: { agent } }) => agent);
  expect(labels).toHaveLength(101);
  expect(metrics.series()[0]).toMatchObject({ labels: { agent: "other" }, series: { submitted: 2 } });
});
