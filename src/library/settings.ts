import { checkKnown, type Fields, invalidField, isObject, optionalNumber } from "../model/field-checks.ts";
import { type Lane, STRATEGIES, TASKS_LANE } from "../model/lane.ts";
import { DEFAULT_RETRY_POLICY, type RetryPolicy } from "../model/retry-policy.ts";
import { checkRetryPolicy } from "../model/retry-policy-input.ts";
import { TIMEOUT_MIN_MS } from "../model/task-input.ts";
import type { LaneOptions, RotaOptions, SchedulerOptions } from "../rota-options.ts";
import type { AdmissionLimits } from "../storage/storage.ts";

const DEFAULT_LANES = { main: 30, subagent: 50, team: 100, cron: 30 } as const;
const DEFAULT_SCHEDULER = {
  enabled: true,
  strategy: "fair-fifo",
  maxQueueSize: 1_000,
  maxPerAgent: 100,
  maxInflight: 20,
  maxPerAgentInflight: 10,
  workerCount: 4,
} as const satisfies SchedulerOptions;
const DEFAULT_TIMEOUTS = { defaultMs: 120_000, maxMs: 600_000 } as const;
const DEFAULT_GRACE_SEC = 30;
/** How long ended tasks are kept. */
const DEFAULT_TTL_SEC = { memory: 300, durable: 30 * 24 * 60 * 60 } as const;

/** A count that somebody might mean; more is a slip of the finger. */
const COUNT_MAX = 10_000_000;
const SECONDS_MAX = 10 * 365 * 24 * 60 * 60;
const TIMEOUT_MAX_MS = 24 * 60 * 60 * 1_000;

/** The options with every default filled in. */
export interface Settings {
  readonly scheduler: Required<Omit<SchedulerOptions, "resultTTLSec">>;
  readonly limits: AdmissionLimits;
  readonly lanes: readonly Lane[];
  readonly retryPolicy: RetryPolicy;
  readonly timeoutMs: number;
  readonly timeoutMaxMs: number;
  readonly shutdownGraceMs: number;
  readonly resultTTLSec: (storage: { readonly durable: boolean }) => number;
}

/** Checks the options and completes them. Throws `invalid_field`, naming what to write instead. */
export function resolveSettings(options: RotaOptions): Settings {
  checkKnown(options as Fields, OPTION_NAMES);
  const scheduler = resolveScheduler(section(options, "scheduler"));
  const { defaultMs, maxMs } = resolveTimeouts(section(options, "timeouts"));
  const grace = optionalNumber(options as Fields, "shutdownGraceSec", {
    min: 0,
    max: SECONDS_MAX,
    integer: false,
  });
  return {
    scheduler,
    limits: { maxQueueSize: scheduler.maxQueueSize, maxPerAgent: scheduler.maxPerAgent },
    lanes: [tasksLane(scheduler), ...resolveLanes(section(options, "lanes"), scheduler)],
    retryPolicy: { ...DEFAULT_RETRY_POLICY, ...checkRetryPolicy(section(options, "retry"), "retry.") },
    timeoutMs: Math.min(defaultMs, maxMs),
    timeoutMaxMs: maxMs,
    shutdownGraceMs: (grace ?? DEFAULT_GRACE_SEC) * 1_000,
    resultTTLSec: ({ durable }) => scheduler.resultTTLSec ?? DEFAULT_TTL_SEC[durable ? "durable" : "memory"],
  };
}

const OPTION_NAMES: readonly (keyof RotaOptions)[] = [
  "storage",
  "scheduler",
  "lanes",
  "retry",
  "timeouts",
  "agents",
  "executors",
  "shutdownGraceSec",
  "log",
  "clock",
  "random",
];

function section(options: RotaOptions, name: "scheduler" | "timeouts" | "lanes" | "retry"): Fields {
  const value: unknown = options[name] ?? {};
  if (!isObject(value)) throw invalidField(name, `\`${name}\` must be an object`);
  return value;
}

function resolveScheduler(fields: Fields): Settings["scheduler"] & Pick<SchedulerOptions, "resultTTLSec"> {
  const counts = [
    "maxQueueSize",
    "maxPerAgent",
    "maxInflight",
    "maxPerAgentInflight",
    "workerCount",
  ] as const;
  checkKnown(fields, ["enabled", "strategy", "resultTTLSec", ...counts], "scheduler.");
  const { enabled = DEFAULT_SCHEDULER.enabled, strategy = DEFAULT_SCHEDULER.strategy } =
    fields as SchedulerOptions;
  if (typeof enabled !== "boolean")
    throw invalidField("scheduler.enabled", "`scheduler.enabled` must be true or false");
  if (!STRATEGIES.includes(strategy)) {
    throw invalidField(
      "scheduler.strategy",
      `\`scheduler.strategy\` must be one of ${STRATEGIES.join(", ")}`,
    );
  }
  const resultTTLSec = optionalNumber(fields, "resultTTLSec", { min: 1, max: SECONDS_MAX }, "scheduler.");
  const numbers = { ...DEFAULT_SCHEDULER } as { -readonly [K in (typeof counts)[number]]: number };
  for (const name of counts) {
    numbers[name] = optionalNumber(fields, name, { min: 1, max: COUNT_MAX }, "scheduler.") ?? numbers[name];
  }
  return { ...numbers, enabled, strategy, ...(resultTTLSec === undefined ? {} : { resultTTLSec }) };
}

function tasksLane({ workerCount, maxInflight, maxPerAgentInflight, strategy }: Settings["scheduler"]): Lane {
  return {
    name: TASKS_LANE,
    concurrency: workerCount,
    total: maxInflight,
    perAgent: maxPerAgentInflight,
    strategy,
  };
}

function resolveLanes(fields: Fields, { strategy }: Settings["scheduler"]): Lane[] {
  if (fields[TASKS_LANE] !== undefined) {
    throw invalidField(
      "lanes.tasks",
      "`lanes.tasks` is described by `scheduler.workerCount`, `maxInflight` and `maxPerAgentInflight`",
    );
  }
  return Object.entries({ ...DEFAULT_LANES, ...fields }).map(([name, value]) => {
    const { concurrency, total } = resolveLane(name, value);
    return { name, concurrency, total: total ?? null, perAgent: null, strategy };
  });
}

function resolveLane(name: string, value: unknown): LaneOptions {
  const prefix = `lanes.${name}.`;
  const fields = typeof value === "number" ? { concurrency: value } : value;
  if (!isObject(fields))
    throw invalidField(`lanes.${name}`, `\`lanes.${name}\` must be a number or an object`);
  checkKnown(fields, ["concurrency", "total"], prefix);
  const concurrency = optionalNumber(fields, "concurrency", { min: 0, max: COUNT_MAX }, prefix);
  const total = optionalNumber(fields, "total", { min: 0, max: COUNT_MAX }, prefix);
  if (concurrency === undefined) {
    throw invalidField(
      `${prefix}concurrency`,
      `\`${prefix}concurrency\` says how many run at once: it is required`,
    );
  }
  return { concurrency, ...(total === undefined ? {} : { total }) };
}

function resolveTimeouts(fields: Fields): { defaultMs: number; maxMs: number } {
  const range = { min: TIMEOUT_MIN_MS, max: TIMEOUT_MAX_MS, unit: "milliseconds" };
  checkKnown(fields, ["defaultMs", "maxMs"], "timeouts.");
  return {
    defaultMs: optionalNumber(fields, "defaultMs", range, "timeouts.") ?? DEFAULT_TIMEOUTS.defaultMs,
    maxMs: optionalNumber(fields, "maxMs", range, "timeouts.") ?? DEFAULT_TIMEOUTS.maxMs,
  };
}
