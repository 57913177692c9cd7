import { z } from "zod";
import { NODE_STATES } from "../model/node-state.ts";
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
    id: z.string().describe("New at each start, and when a node comes back after it was lost."),
    version: z.string().nullable().describe("Of Rota; null: a version that did not say."),
    startedAt: time.nullable().describe("When it joined under this id; null: its version did not say."),
    lastSeenAt: time.describe("When it last renewed its lease, which it does every 5 s."),
    lanes: z
      .array(
        z.strictObject({
          name: z.string(),
          slots: z.int().describe("How many of its tasks the node runs at once."),
          running: z.int(),
        }),
      )
      .readonly()
      .describe("Those that it can run, or runs something of, by name."),
    state: z
      .enum(NODE_STATES)
      .describe(
        "`alive`: it takes tasks and runs them. `draining`: it ends what it runs and takes nothing more. `lost`: it has not renewed for a whole lease (15 s) or was declared dead; other nodes take its tasks back, and then it leaves the list.",
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
    "The processes on this database that run tasks, with what each can run and runs. One whose scheduler is disabled is not listed.",
  response: { 200: nodeList, ...errorAnswers("storage_unavailable") },
};
