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
        "The configuration (or the program), this API, or Rota itself. Only `stored` ones change here.",
      ),
  })
  .meta({
    id: "Agent",
    description: "An agent that Rota knows.",
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
  querystring: querySchema(AGENT_PAGE),
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
