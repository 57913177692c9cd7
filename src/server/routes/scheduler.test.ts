import { expect, test } from "vitest";
import { openTestServer } from "../../../test/support/http.ts";
import { schedulerStats } from "../../api/scheduler.ts";

test.each(["", "/v1"])(
  "%s/scheduler/stats has the queue, what was done, and the numbers in force",
  async (prefix) => {
    const { ask } = await openTestServer({ start: false });
    await ask("/tasks", { json: { agentId: "a", payload: 1 } });
    await ask("/tasks", { json: { agentId: "a", payload: 2 } });
    const { status, body } = await ask(`${prefix}/scheduler/stats`);
    expect([status, schedulerStats.parse(body)]).toEqual([
      200,
      {
        queue: { totalQueued: 2, totalInflight: 0, agentCounts: { a: 2 } },
        metrics: {
          tasksSubmitted: 2,
          tasksCompleted: 0,
          tasksFailed: 0,
          tasksCancelled: 0,
          tasksRejected: 0,
          tasksExpired: 0,
          dispatchCount: 0,
          avgDispatchLatencyMs: 0,
          agents: { a: { submitted: 2, completed: 0, failed: 0, cancelled: 0, rejected: 0 } },
        },
        config: {
          strategy: "fair-fifo",
          maxQueueSize: 1000,
          maxPerAgent: 100,
          maxInflight: 20,
          maxPerAgentFlight: 10,
          workerCount: 4,
          resultTTL: "5m0s",
        },
      },
    ]);
  },
);
