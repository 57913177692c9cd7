import { z } from "zod";
import { LANE } from "../model/input/lane-input.ts";
import { errorAnswersWith } from "./error.ts";
import { requestSchema } from "./input-schema.ts";

const laneInput = requestSchema(LANE);

const LANE_EXAMPLE = {
  name: "crawl",
  concurrency: 5,
  total: 20,
  running: 5,
  waiting: 12,
  oldestWaitMs: 1_240,
};

export const lane = z
  .strictObject({
    name: z.string(),
    concurrency: z.int().describe("How many of its tasks the responding process runs at once; 0: none."),
    total: z.int().nullable().describe("How many run at once over all nodes; null: no bound of its own."),
    running: z.int().describe("Over all nodes."),
    waiting: z.int().describe("All tasks that have not started, for any reason, over all nodes."),
    oldestWaitMs: z
      .int()
      .nullable()
      .describe("How long the oldest task that could start has waited; null: there is none."),
  })
  .meta({ id: "Lane", description: "A named pool of concurrency.", examples: [LANE_EXAMPLE] });

export const laneList = z.strictObject({ lanes: z.array(lane).readonly() }).meta({
  id: "LaneList",
  description: "All lanes.",
  examples: [{ lanes: [LANE_EXAMPLE] }],
});

export const clearedLane = z.strictObject({ cancelled: z.int() }).meta({
  id: "ClearedLane",
  description: "The number of cancelled tasks.",
  examples: [{ cancelled: 12 }],
});

// ------------------------------------------------------------------------------------------------------ operations

const tags = ["lanes"];
const errorAnswers = errorAnswersWith({
  not_found: "lane not found",
  conflict: 'the lane "crawl" is set by the configuration: change it there',
});
const params = z.strictObject({ name: z.string().describe("The name, URL-encoded: a `/` in it is `%2F`.") });

export const listLanes = {
  operationId: "listLanes",
  tags,
  summary: "List lanes",
  description: "All lanes, with their running and waiting tasks.",
  response: { 200: laneList, ...errorAnswers("storage_unavailable") },
};

export const putLane = {
  operationId: "putLane",
  tags,
  summary: "Create or replace a lane",
  description:
    "Stores the lane, which applies on all nodes at once. Running tasks continue. A lane of a file or a variable can be changed only there: 409.",
  params,
  body: laneInput,
  response: { 200: lane, ...errorAnswers("conflict", "draining", "storage_unavailable") },
};

export const clearLane = {
  operationId: "clearLane",
  tags,
  summary: "Cancel the waiting tasks of a lane",
  description:
    "Cancels all waiting tasks of the lane, with the error `lane_cleared`. Running tasks continue.",
  params,
  response: { 200: clearedLane, ...errorAnswers("not_found", "storage_unavailable") },
};
