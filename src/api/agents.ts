import { z } from "zod";
import { EXECUTOR_TYPES, type ExecutorType, USER_EXECUTOR_TYPES } from "../model/executor-config.ts";
import { errorAnswersWith } from "./error.ts";

/** The executor of an agent, with the fields of its type. The library checks those. */
function executorOf(types: readonly ExecutorType[]) {
  return z.looseObject({ type: z.enum(types as [ExecutorType, ...ExecutorType[]]) });
}

const executor = executorOf(EXECUTOR_TYPES);
const userExecutor = executorOf(USER_EXECUTOR_TYPES);
const limit = z.int().min(1);

const settings = {
  executor: executor
    .exactOptional()
    .describe("Does its work; left out: the executor of the task's kind does."),
  lane: z.string().exactOptional().describe("Where its tasks run when they do not say."),
  maxInflight: limit
    .exactOptional()
    .describe("How many of its tasks run at once, over all lanes and nodes; left out: no bound of its own."),
  maxQueued: limit
    .exactOptional()
    .describe("How many of its tasks may wait, in place of `scheduler.maxPerAgent`."),
  contextWindow: limit
    .exactOptional()
    .describe(
      "How many tokens its model takes in at most: what history must fit into, and a session's window unless an answer names another.",
    ),
  writs: z
    .boolean()
    .exactOptional()
    .describe("Whether `/schedule` lines in its answers are carried out; left out: they are not."),
};

const AGENT_EXAMPLE = {
  id: "research",
  executor: { type: "http", url: "https://agents.example.com/research" },
  lane: "main",
  maxInflight: 2,
};

const changes = {
  executor: userExecutor.nullable().exactOptional(),
  lane: z.string().nullable().exactOptional(),
  maxInflight: limit.nullable().exactOptional(),
  maxQueued: limit.nullable().exactOptional(),
  contextWindow: limit.nullable().exactOptional(),
  writs: z.boolean().nullable().exactOptional(),
};

const agentInput = z.strictObject({ id: z.string(), ...changes }).meta({
  id: "NewAgent",
  description: "Who does work, where, and how much of it at once. Null is the same as left out.",
  examples: [AGENT_EXAMPLE, { id: "team/writer", maxQueued: 20 }],
});

const agentChanges = z.strictObject(changes).meta({
  id: "AgentChanges",
  description: "What is left out stays; null takes it away.",
  examples: [{ maxInflight: 5, lane: null }, { writs: true }],
});

export const agent = z
  .strictObject({
    id: z.string(),
    ...settings,
    source: z
      .enum(["config", "stored", "built-in"])
      .describe(
        "The configuration (or the program), this API, or Rota itself. Only `stored` ones change here.",
      ),
  })
  .meta({
    id: "Agent",
    description: "An agent that Rota knows.",
    examples: [{ ...AGENT_EXAMPLE, source: "stored" }],
  });

export const agentList = z
  .strictObject({
    agents: z.array(agent).readonly().describe("By id."),
    count: z.int().describe("Of this page."),
    nextCursor: z.string().nullable().describe("Null on the last page."),
  })
  .meta({
    id: "AgentList",
    description: "The agents that Rota knows.",
    examples: [{ agents: [{ id: "index", source: "built-in" }], count: 1, nextCursor: null }],
  });

export const deletedAgent = z.strictObject({ deleted: z.literal(true) }).meta({
  id: "DeletedAgent",
  description: "The agent is no longer listed; its tasks stay.",
  examples: [{ deleted: true }],
});

// ------------------------------------------------------------------------------------------------------ operations

const tags = ["agents"];
const errorAnswers = errorAnswersWith({
  not_found: "agent not found",
  conflict: 'the agent "research" is set by the configuration: change it there',
});
const params = z.strictObject({ id: z.string().describe("The id, URL-encoded: a `/` in it is `%2F`.") });

export const createAgent = {
  operationId: "createAgent",
  tags,
  summary: "Make an agent known",
  description: "Stored, and known to all nodes at once. A task may also name an agent that is not listed.",
  body: agentInput,
  response: { 201: agent, ...errorAnswers("conflict", "storage_unavailable") },
};

export const listAgents = {
  operationId: "listAgents",
  tags,
  summary: "List agents",
  description: "By id: those of the configuration, those made here, and `index`, which is always there.",
  querystring: z.strictObject({
    limit: z.string().exactOptional().describe("How many at most: 1 to 1000, 1000 unless given."),
    cursor: z.string().exactOptional().describe("`nextCursor` of the page before."),
  }),
  response: { 200: agentList, ...errorAnswers("storage_unavailable") },
};

export const getAgent = {
  operationId: "getAgent",
  tags,
  summary: "Look at an agent",
  description: "What is known of one agent.",
  params,
  response: { 200: agent, ...errorAnswers("not_found", "storage_unavailable") },
};

export const updateAgent = {
  operationId: "updateAgent",
  tags,
  summary: "Change an agent",
  description:
    "What is left out stays, null takes it away. An agent of the configuration changes only there: 409.",
  params,
  body: agentChanges,
  response: { 200: agent, ...errorAnswers("not_found", "conflict", "storage_unavailable") },
};

export const deleteAgent = {
  operationId: "deleteAgent",
  tags,
  summary: "Forget an agent",
  description: "Its tasks stay, and are those of an agent that is not listed.",
  params,
  response: { 200: deletedAgent, ...errorAnswers("not_found", "conflict", "storage_unavailable") },
};
