import { z } from "zod";
import { STRATEGIES } from "../model/lane.ts";
import { errorAnswers } from "./error.ts";

const count = z.int();

export const schedulerStats = z
  .strictObject({
    queue: z
      .strictObject({
        totalQueued: count.describe(
          "Waiting tasks as admission counts them, including `delayed` and `waiting_dependency` tasks.",
        ),
        totalInflight: count,
        agentCounts: z.record(z.string(), count).describe("The same as `totalQueued`, by agent."),
      })
      .describe("Of your tenant, over all nodes."),
    metrics: z
      .strictObject({
        tasksSubmitted: count,
        tasksCompleted: count,
        tasksFailed: count.describe("Failed for good, expired ones included."),
        tasksCancelled: count,
        tasksRejected: count,
        tasksExpired: count.describe("Passed their deadline before they started."),
        dispatchCount: count,
        avgDispatchLatencyMs: z
          .number()
          .describe("The average wait, from when a task could start to its start."),
        agents: z.record(
          z.string(),
          z.strictObject({
            submitted: count,
            completed: count,
            failed: count,
            cancelled: count,
            rejected: count,
          }),
        ),
      })
      .describe("Of this process, since it started."),
    config: z.strictObject({
      strategy: z.enum(STRATEGIES),
      maxQueueSize: count,
      maxPerAgent: count,
      maxInflight: count.describe("Of the lane `tasks`, over all nodes; 0: no limit."),
      maxPerAgentFlight: count,
      workerCount: count.describe("Of the lane `tasks`, in this process."),
      resultTTL: z.string().describe("Like `5m0s`."),
    }),
  })
  .meta({
    id: "SchedulerStats",
    description: "Counts of the queue, counters of this process since it started, and its limits.",
    examples: [
      {
        queue: { totalQueued: 5, totalInflight: 2, agentCounts: { crawler: 3, scraper: 2 } },
        metrics: {
          tasksSubmitted: 42,
          tasksCompleted: 35,
          tasksFailed: 3,
          tasksCancelled: 2,
          tasksRejected: 1,
          tasksExpired: 1,
          dispatchCount: 38,
          avgDispatchLatencyMs: 12.5,
          agents: { crawler: { submitted: 25, completed: 22, failed: 2, cancelled: 1, rejected: 0 } },
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
    ],
  });

export const getSchedulerStats = {
  operationId: "getSchedulerStats",
  tags: ["scheduler"],
  summary: "Get the counters of the scheduler",
  description:
    "Counts of the queue over all nodes, counters of this process since it started, and its limits.",
  response: { 200: schedulerStats, ...errorAnswers("storage_unavailable") },
};
