import { z } from "zod";
import { EXECUTOR_TYPES, type ExecutorType } from "../model/executor-config.ts";
import { AGENT, AGENT_CHANGES, AGENT_FIELDS, AGENT_PAGE } from "../model/input/agent-schema.ts";
import { errorAnswersWith } from "./error.ts";
import { optionalFields, querySchema, requestSchema } from "./input-schema.ts";

/** The executor of an agent, with the fields of its type. */
const executor = z.looseObject({ type: z.enum(EXECUTOR_TYPES as [ExecutorType, ...ExecutorType[]]) });

const settings = optionalFields(AGENT_FIELDS);

const agentInput = requestSchema(AGENT);

const agentChanges = requestSchema(AGENT_CHANGES);

export const agent = z
  .strictObject({
    id: z.string(),
    ...settings,
    executor: executor.exactOptional().describe(settings.executor.description ?? ""),
    source: z
      .enum(["config", "stored", "built-in"])
      .describe(
        "Where the agent is defined: `config` (the configuration or a program), `stored` (this API), or `built-in`. Only `stored` agents can be changed here.",
      ),
  })
  .meta({
    id: "Agent",
    description: "An agent.",
    examples: [{ ...AGENT.examples[0], source: "stored" }],
  });

export const agentList = z
  .strictObject({
    agents: z.array(agent).readonly().describe("By id."),
    count: z.int().describe("Of this page."),
    nextCursor: z.string().nullable().describe("Null on the last page."),
  })
  .meta({
    id: "AgentList",
    description: "A page of agents.",
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
  summary: "Create an agent",
  description:
    "The agent is stored, and all nodes can use it at once. A task may also name an agent that is not listed.",
  body: agentInput,
  response: { 201: agent, ...errorAnswers("conflict", "storage_unavailable") },
};

export const listAgents = {
  operationId: "listAgents",
  tags,
  summary: "List agents",
  description: "All agents by id: those of the configuration, stored ones, and `index`, which always exists.",
  querystring: querySchema(AGENT_PAGE),
  response: { 200: agentList, ...errorAnswers("storage_unavailable") },
};

export const getAgent = {
  operationId: "getAgent",
  tags,
  summary: "Get an agent",
  description: "One agent with its executor and limits.",
  params,
  response: { 200: agent, ...errorAnswers("not_found", "storage_unavailable") },
};

export const updateAgent = {
  operationId: "updateAgent",
  tags,
  summary: "Change an agent",
  description:
    "Fields that are left out stay; null removes a field. An agent of the configuration can be changed only there: 409.",
  params,
  body: agentChanges,
  response: { 200: agent, ...errorAnswers("not_found", "conflict", "storage_unavailable") },
};

export const deleteAgent = {
  operationId: "deleteAgent",
  tags,
  summary: "Delete an agent",
  description: "Its tasks stay. From now on the executor of their kind runs them.",
  params,
  response: { 200: deletedAgent, ...errorAnswers("not_found", "conflict", "storage_unavailable") },
};
