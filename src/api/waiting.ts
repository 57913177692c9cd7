import { z } from "zod";
import { WAITING_CODES } from "../model/explanation.ts";
import { errorAnswers } from "./error.ts";

const EXAMPLE = {
  reasons: [
    { code: "workers_busy" as const, lane: "crawl", count: 12 },
    { code: "agent_full" as const, lane: "tasks", agentId: "research", count: 3 },
    { code: "not_before" as const, count: 1 },
  ],
  total: 16,
};

const waitingReasons = z
  .strictObject({
    reasons: z
      .array(
        z.strictObject({
          code: z
            .enum(WAITING_CODES)
            .describe("As in the explanation of a task, or `held_back`, or `other`."),
          lane: z.string().exactOptional().describe("With what a lane holds."),
          agentId: z.string().exactOptional().describe("With what holds the tasks of one agent."),
          count: z.int(),
        }),
      )
      .readonly()
      .describe("Most first, fifty at most; the rest is `other`."),
    total: z.int().describe("All tasks that wait."),
  })
  .meta({ id: "WaitingReasons", description: "Why work waits.", examples: [EXAMPLE] });

export const getWaiting = {
  operationId: "getWaiting",
  tags: ["tasks"],
  summary: "Ask why work waits",
  description:
    "All tasks of the tenant that wait, each counted once, by the first reason that holds it, as the node that is asked sees it. It is read from counters, however much waits. They do not tell apart what the explanation of a task does: what waits for its retry is counted as `not_before`; what its batch, its session or its concurrency key holds as `held_back`; what waits for a task that nobody knows as `waiting_for_task`; what was pre-empted by what holds it now.",
  response: { 200: waitingReasons, ...errorAnswers("storage_unavailable") },
};
