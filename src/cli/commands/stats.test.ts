import { expect, test } from "vitest";
import type { SchedulerStats } from "../../client/index.ts";
import { statsLines } from "./stats.ts";

const STATS: SchedulerStats = {
  queue: { totalQueued: 0, totalInflight: 3, agentCounts: {} },
  metrics: {
    tasksSubmitted: 0,
    tasksCompleted: 0,
    tasksFailed: 0,
    tasksCancelled: 0,
    tasksRejected: 0,
    tasksExpired: 0,
    dispatchCount: 0,
    avgDispatchLatencyMs: 0,
    agents: {},
  },
  config: {
    strategy: "fair-fifo",
    maxQueueSize: 1_000,
    maxPerAgent: 100,
    maxInflight: 20,
    maxPerAgentFlight: 10,
    workerCount: 4,
    resultTTL: "5m0s",
  },
};

test.each([
  [20, "running    3 (up to 20 in the lane tasks)"],
  [0, "running    3 (no limit over all nodes in the lane tasks)"],
])("a limit of %s for the lane `tasks` is shown as %j", (maxInflight, line) => {
  const stats = { ...STATS, config: { ...STATS.config, maxInflight } };
  const now = Date.parse("2026-05-08T12:00:00Z");
  expect(statsLines(stats, { startedAt: "2026-05-08T11:00:00Z", now })).toContain(line);
});
