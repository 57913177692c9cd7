import { z } from "zod";
import { NODE_STATES } from "../model/node.ts";
import { errorAnswers } from "./error.ts";
import { time } from "./time.ts";

const NODE_EXAMPLE = {
  id: "worker-7-1-9f86d081884c",
  version: "1.0.0",
  startedAt: "2026-03-08T12:00:00.000Z",
  lastSeenAt: "2026-03-08T12:34:56.789Z",
  lanes: [{ name: "crawl", slots: 5, running: 2 }],
  state: "alive" as const,
};

const node = z
  .strictObject({
    id: z
      .string()
      .describe(
        "The id of the node. It changes at each start, and when the node comes back after it was lost.",
      ),
    version: z
      .string()
      .nullable()
      .describe("The version of Rota; null: an old version that does not report it."),
    startedAt: time
      .nullable()
      .describe("When the node joined under this id; null: an old version that does not report it."),
    lastSeenAt: time.describe("When the node last renewed its lease. It does so every 5 s."),
    lanes: z
      .array(
        z.strictObject({
          name: z.string(),
          slots: z.int().describe("How many tasks of the lane the node can run at once."),
          running: z.int(),
        }),
      )
      .readonly()
      .describe("The lanes that the node serves or has running tasks of, ordered by name."),
    state: z
      .enum(NODE_STATES)
      .describe(
        "`alive`: the node takes and runs tasks. `draining`: it finishes its running tasks and takes no more. `lost`: it has not renewed its lease for 15 s, or was declared dead; other nodes requeue its tasks, then it is no longer listed.",
      ),
  })
  .meta({ id: "Node", description: "A process that runs tasks.", examples: [NODE_EXAMPLE] });

const nodeList = z.strictObject({ nodes: z.array(node).readonly() }).meta({
  id: "NodeList",
  description: "The processes that run tasks.",
  examples: [{ nodes: [NODE_EXAMPLE] }],
});

export const listNodes = {
  operationId: "listNodes",
  tags: ["node"],
  summary: "List nodes",
  description:
    "The processes on this database that run tasks, with their slots and running tasks. A process whose scheduler is disabled is not listed.",
  response: { 200: nodeList, ...errorAnswers("storage_unavailable") },
};
