import type { ExecutorConfig } from "../executor-config.ts";
import { bounds } from "./bounds-schema.ts";
import { EXECUTOR_VARIANTS } from "./executor-variants.ts";
import { agentId, anyLane, boolean, number, object, text } from "./kinds.ts";
import { pageLimit } from "./page-input.ts";
import { type FilterSchema, type Kind, optional, required, type Schema } from "./schema.ts";
import { agentNames, labels } from "./worker-schema.ts";

/** More than this is a typing mistake. */
const LIMIT = { min: 1, max: 10_000_000 } as const;

/** The settings of an agent, also in the configuration. */
export const AGENT_FIELDS = {
  executor: optional(executor(), {
    description: "Does its work.",
    default: "the executor of the task's kind",
    flag: "--executor <json>",
  }),
  lane: optional(anyLane(), {
    description: "Where its tasks run when they do not say; a lane that does not exist stands for `main`.",
    flag: "--lane <name>",
  }),
  maxInflight: optional(number(LIMIT), {
    description: "How many of its tasks run at once, over all lanes and nodes.",
    default: "no limit of its own",
    flag: "--max-inflight <number>",
  }),
  maxQueued: optional(number(LIMIT), {
    description: "How many of its tasks may wait, in place of `scheduler.maxPerAgent`.",
    flag: "--max-queued <number>",
  }),
  contextWindow: optional(number(LIMIT), {
    description:
      "The context window of its model, in tokens. It bounds the history that a session sends, and is the window of a session unless a usage report has another.",
    flag: "--context-window <tokens>",
  }),
  require: optional(
    object({ labels: required(labels(), { description: "Labels of the worker, with their values." }) }),
    {
      description: "Only workers with all these labels run its tasks.",
      default: "every worker that names it",
      flag: "--require <json>",
    },
  ),
  writs: optional(boolean(), {
    description: "Whether `/schedule` lines in its answers are carried out.",
    default: "they are not",
    flag: "--writs",
  }),
  delegates: optional(agentNames({ star: "all agents of the tenant" }), {
    description:
      "The agents that its tasks may submit tasks to with their task token, besides itself; `*`: all of the tenant.",
    default: "none",
    flag: "--delegates <ids>",
  }),
  taskToken: optional(boolean(), {
    description:
      "Whether an executor of type `http` gets the task token, as the header `X-Rota-Task-Token`. The server that has it acts for this agent until the attempt ends.",
    default: "it does not",
    flag: "--task-token",
  }),
  bounds: optional(bounds(), {
    description: "What its tasks, and keys for it without bounds of their own, may make.",
    default: "`bounds` of the configuration",
    flag: "--bounds <json>",
  }),
} as const;

const EXAMPLE = {
  id: "research",
  executor: { type: "http", url: "https://agents.example.com/research" },
  lane: "main",
  maxInflight: 2,
} as const;

/** The input of an agent. */
export const AGENT = {
  name: "NewAgent",
  noun: "agent",
  description: "An agent: its executor, its lane and its limits. Null is the same as left out.",
  fields: { id: required(agentId()), ...AGENT_FIELDS },
  examples: [EXAMPLE, { id: "team/writer", maxQueued: 20 }],
} as const satisfies Schema;

/** The changes of an agent. */
export const AGENT_CHANGES = {
  name: "AgentChanges",
  noun: "agent",
  isChanges: true,
  description: "Fields that are left out stay; null removes a field.",
  fields: AGENT_FIELDS,
  examples: [{ maxInflight: 5, lane: null }, { writs: true }],
} as const satisfies Schema;

/** The most agents of a page. */
export const AGENT_PAGE_MAX = 1_000;

/** Which agents to list. */
export const AGENT_PAGE = {
  noun: "page",
  refusesNull: true,
  fields: {
    limit: pageLimit({ max: AGENT_PAGE_MAX, normally: AGENT_PAGE_MAX }),
    cursor: optional(text(), { description: "`nextCursor` of the page before." }),
  },
} as const satisfies FilterSchema;

/** `checkExecutorConfig` checks it, when the executor is made. */
function executor(): Kind<ExecutorConfig, unknown> {
  return {
    shape: { type: "variants", of: EXECUTOR_VARIANTS },
    read: (value) => value,
  };
}
