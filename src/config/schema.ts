import { z } from "zod";
import { AGENT_ID_FORM, toAgentId } from "../model/agent.ts";
import { TIMEOUT_MAX_MS, TIMEOUT_MIN_MS } from "../model/input/kinds.ts";
import { RETRY_RANGES } from "../model/input/retry-policy-schema.ts";
import { STRATEGIES } from "../model/lane.ts";
import { DEFAULT_RETRY_POLICY } from "../model/retry-policy.ts";
import { isStorageUrl, STORAGE_FORMS } from "../model/storage-url.ts";
import { MIB } from "../model/text/bytes.ts";
import { audit } from "./audit-schema.ts";
import { bounds } from "./bounds-schema.ts";
import { executor, executorOfKind } from "./executor-schema.ts";
import { lanes } from "./lanes-schema.ts";
import { log } from "./log-schema.ts";
import { dotted, must, numberIn, oneOf, section, yesOrNo } from "./option-kinds.ts";
import { outbound } from "./outbound-schema.ts";
import { redact } from "./redact-schema.ts";
import { schedules } from "./schedules-schema.ts";
import { server } from "./server-schema.ts";
import { sessions } from "./sessions-schema.ts";
import { tenants } from "./tenants-schema.ts";
import { ui } from "./ui-schema.ts";
import { webhooks } from "./webhooks-schema.ts";

/** A plausible count; more is a typing mistake. */
const COUNT = { min: 1, max: 10_000_000 } as const;
const SECONDS = { min: 0, max: 10 * 365 * 24 * 60 * 60, unit: "seconds" } as const;
const NO_EXECUTOR = { min: 0, max: 7 * 24 * 60 * 60, unit: "seconds" } as const;
/** A month: multiplied by the largest priority, in milliseconds, it is still exact in every database. */
const AGING = { min: 0, max: 30 * 24 * 60 * 60, unit: "seconds" } as const;
const TIMEOUT = { min: TIMEOUT_MIN_MS, max: 24 * 60 * 60 * 1_000, unit: "milliseconds" } as const;

const scheduler = section({
  enabled: yesOrNo()
    .default(true)
    .describe("False: nothing is accepted or run (503 `scheduler_disabled`), reads work."),
  strategy: oneOf(STRATEGIES)
    .default("fair-fifo")
    .describe(
      "`fair-fifo`: the agent with the fewest running tasks goes first; `priority-fifo`: the task with the lowest priority number.",
    ),
  maxQueueSize: numberIn(COUNT)
    .default(1_000)
    .describe(
      "Waiting tasks of one tenant, unless it has a `limits.maxQueued`; a task beyond it is rejected.",
    ),
  maxQueueSizeTotal: numberIn(COUNT)
    .exactOptional()
    .describe(
      "Waiting tasks of all enabled tenants; a task beyond it is rejected. Once a second enabled tenant exists, each tenant gets at most half. Left out: the larger of 100000 and twice `maxQueueSize`.",
    ),
  maxPerAgent: numberIn(COUNT)
    .default(100)
    .describe("Waiting tasks of one agent; a task beyond it is rejected."),
  maxInflight: numberIn(COUNT).default(20).describe("Running tasks of the lane `tasks`, over all nodes."),
  maxPerAgentInflight: numberIn(COUNT)
    .default(10)
    .describe("Running tasks of one agent in the lane `tasks`, over all nodes."),
  workerCount: numberIn(COUNT).default(4).describe("Running tasks of the lane `tasks` in this process."),
  agingSec: numberIn(AGING)
    .default(0)
    .describe("A waiting task gains one step of priority each time it has waited this long; 0: never."),
  noExecutorSec: numberIn(NO_EXECUTOR)
    .default(60)
    .describe(
      "How long a task stays queued if its agent has no executor of its own and no live node has one for its kind. Then it fails; 0: at once.",
    ),
  maxLost: numberIn({ min: 1, max: 1_000 })
    .default(5)
    .describe(
      "How often a process may die while it runs the same task. Then the task fails, even with retries left. After the second time it runs alone in its process.",
    ),
  maxRunningBytes: numberIn({ min: 0, max: 2 ** 40, unit: "bytes" })
    .default(256 * MIB)
    .describe(
      "Memory that the running tasks of this process may hold; beyond it the process starts no further task. 0: no bound.",
    ),
  resultTTLSec: numberIn({ ...SECONDS, min: 1 })
    .exactOptional()
    .describe("How long ended tasks and events are kept: 300 in memory, 30 days on disk."),
});

const retry = section({
  maxRetries: numberIn(RETRY_RANGES.maxRetries)
    .default(DEFAULT_RETRY_POLICY.maxRetries)
    .describe(
      "How often a failed instruction is retried; other kinds are retried only if the task has a `retryPolicy`.",
    ),
  backoffMs: numberIn(RETRY_RANGES.backoffMs)
    .default(DEFAULT_RETRY_POLICY.backoffMs)
    .describe("The wait before the first retry."),
  backoffMultiplier: numberIn(RETRY_RANGES.backoffMultiplier)
    .default(DEFAULT_RETRY_POLICY.backoffMultiplier)
    .describe("The factor by which each further wait is longer."),
  maxBackoffMs: numberIn(RETRY_RANGES.maxBackoffMs)
    .default(DEFAULT_RETRY_POLICY.maxBackoffMs)
    .describe("The longest wait."),
  jitter: numberIn(RETRY_RANGES.jitter)
    .default(DEFAULT_RETRY_POLICY.jitter)
    .describe("Random variation of each wait: 0.25 is up to a quarter more or less."),
});

const timeouts = section({
  defaultMs: numberIn(TIMEOUT)
    .default(120_000)
    .describe("The timeout of each attempt, for tasks without a `timeout`."),
  maxMs: numberIn(TIMEOUT).default(TIMEOUT_MAX_MS).describe("The longest `timeout` that a task may have."),
});

const executors = section({
  action: executorOfKind.exactOptional().describe("The executor of `action` tasks."),
  instruction: executorOfKind.exactOptional().describe("The executor of `instruction` tasks."),
  message: executorOfKind.exactOptional().describe("The executor of `message` tasks."),
  custom: executorOfKind.exactOptional().describe("The executor of `payload` tasks."),
});

const agent = section({
  executor: executor.exactOptional(),
  lane: z.string({ error: must("be the name of a lane") }).exactOptional(),
  maxInflight: numberIn(COUNT).exactOptional(),
  maxQueued: numberIn(COUNT).exactOptional(),
  contextWindow: numberIn(COUNT).exactOptional(),
  require: section({ labels: z.record(z.string(), z.string()) }).exactOptional(),
  writs: yesOrNo().exactOptional(),
  taskToken: yesOrNo().exactOptional(),
  delegates: z.array(z.string(), { error: must("be a list of agents") }).exactOptional(),
  bounds: bounds.exactOptional(),
});

function agentsFault(fault: Parameters<ReturnType<typeof must>>[0]): string {
  if (fault.code !== "invalid_key") return must("be an object of agents")(fault);
  return `\`${dotted(fault.path)}\`: the id of an agent is ${AGENT_ID_FORM}`;
}

/** Everything that can be configured: the types, the defaults and what docs/configuration.md says of them. */
export const configSchema = section({
  server: server.prefault({}),
  ui: ui.prefault({}),
  storage: z
    // The value may hold a password, so that the sentence does not repeat it.
    .string({ error: `\`storage\` must be ${STORAGE_FORMS}` })
    .refine(isStorageUrl, { error: `\`storage\` must be ${STORAGE_FORMS}` })
    .default("sqlite:rota.db")
    .describe("Where tasks are kept: `sqlite:FILE`, `sqlite::memory:` or `postgres://…`."),
  storageWaitSec: numberIn({ ...SECONDS, integer: false })
    .default(60)
    .describe("How long Rota waits at the start for a PostgreSQL that is not up yet; 0: not at all."),
  scheduler: scheduler.prefault({}),
  lanes: lanes.prefault({}),
  sessions: sessions.prefault({}),
  schedules: schedules.prefault({}),
  retry: retry.prefault({}),
  timeouts: timeouts.prefault({}),
  tenants: tenants.prefault({}),
  bounds: bounds.prefault({}),
  executors: executors.prefault({}),
  agents: z
    .record(
      z.string().refine((id) => toAgentId(id) !== null),
      agent,
      { error: agentsFault },
    )
    .default({})
    .describe(
      "Agents by id, each with an `executor`, a `lane`, `maxInflight`, `maxQueued`, `contextWindow`, `require`, `writs`, `taskToken`, `delegates` and `bounds` of its own, all optional.",
    ),
  outbound: outbound.prefault({}),
  webhooks: webhooks.prefault({}),
  redact,
  audit: audit.prefault({}),
  log: log.prefault({}),
  shutdownGraceSec: numberIn({ ...SECONDS, integer: false })
    .default(30)
    .describe(
      "How long running tasks may continue after SIGTERM or `stop()`; the rest then returns to the queue.",
    ),
});

export type Config = z.output<typeof configSchema>;
