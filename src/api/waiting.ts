import { z } from "zod";
import { WAITING_CODES } from "../model/explanation.ts";
import { errorAnswers } from "./error.ts";

const EXAMPLE = {
  reasons: [
    { code: "node_full" as const, lane: "crawl", count: 12 },
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
          code: z.enum(WAITING_CODES).describe("A reason code of `explain`, or `held_back`, or `other`."),
          lane: z.string().exactOptional().describe("The lane, where a lane holds the tasks."),
          agentId: z.string().exactOptional().describe("The agent, where its limit holds the tasks."),
          count: z.int(),
        }),
      )
      .readonly()
      .describe(
        "At most 50, the reason with the most tasks first. Tasks with other reasons are counted as `other`.",
      ),
    total: z.int().describe("All waiting tasks of the tenant."),
  })
  .meta({ id: "WaitingReasons", description: "Why work waits.", examples: [EXAMPLE] });

export const getWaiting = {
  operationId: "getWaiting",
  tags: ["tasks"],
  summary: "Count waiting tasks by reason",
  description:
    "Counts all waiting tasks of the tenant by the first reason that holds each, as the responding node sees it. The counts come from counters, so the request costs the same for any backlog. Some reasons are coarser than those of `explain`: a task that waits for its retry counts as `not_before`; one held by its batch, session or concurrency key as `held_back`; one that waits for an unknown task id as `waiting_for_task`; a pre-empted one by what holds it now.",
  response: { 200: waitingReasons, ...errorAnswers("storage_unavailable") },
};
