import { check, faultsError } from "../config/check.ts";
import { unknownOption } from "../config/option-kinds.ts";
import { type Config, configSchema } from "../config/schema.ts";
import type { RotaOptions } from "../interface/options.ts";
import { isObject } from "../model/field-checks.ts";
import { type Lane, TASKS_LANE } from "../model/lane.ts";
import type { RetryPolicy } from "../model/retry-policy.ts";
import type { AdmissionLimits } from "../storage/storage.ts";

/** How long ended tasks are kept. */
const DEFAULT_TTL_SEC = { memory: 300, durable: 30 * 24 * 60 * 60 } as const;

/** The options with every default filled in. */
export interface Settings {
  readonly scheduler: Config["scheduler"];
  readonly limits: AdmissionLimits;
  readonly lanes: readonly Lane[];
  readonly retryPolicy: RetryPolicy;
  readonly timeoutMs: number;
  readonly timeoutMaxMs: number;
  readonly shutdownGraceMs: number;
  readonly resultTTLSec: (storage: { readonly durable: boolean }) => number;
}

/** Checks the options and completes them. Throws one `invalid_field` that names everything to write instead. */
export function resolveSettings(options: RotaOptions): Settings {
  checkNames(options);
  const { scheduler, lanes, retry, timeouts, shutdownGraceSec } = complete(options);
  return {
    scheduler,
    limits: { maxQueueSize: scheduler.maxQueueSize, maxPerAgent: scheduler.maxPerAgent },
    lanes: [tasksLane(scheduler), ...otherLanes(lanes, scheduler)],
    retryPolicy: retry,
    timeoutMs: Math.min(timeouts.defaultMs, timeouts.maxMs),
    timeoutMaxMs: timeouts.maxMs,
    shutdownGraceMs: shutdownGraceSec * 1_000,
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

function checkNames(options: RotaOptions): void {
  const unknown = Object.keys(options).filter((name) => !(OPTION_NAMES as readonly string[]).includes(name));
  if (unknown.length > 0) throw faultsError(unknown.map((name) => unknownOption(name, OPTION_NAMES)));
}

/** What the library shares with the configuration file; executors may be functions here and are checked where they are made. */
const sharedSchema = configSchema.pick({
  scheduler: true,
  lanes: true,
  retry: true,
  timeouts: true,
  shutdownGraceSec: true,
});

function complete({ scheduler, lanes, retry, timeouts, shutdownGraceSec }: RotaOptions) {
  const given = { scheduler, lanes, retry, timeouts, shutdownGraceSec };
  const checked = check(sharedSchema, withoutUndefined(given));
  if (checked.ok) return checked.value;
  throw faultsError(checked.faults.map(({ message }) => message));
}

/** In a program, unlike in a file, an option can be there and undefined: that is one that was left out. */
function withoutUndefined(value: unknown): unknown {
  if (!isObject(value)) return value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return Object.fromEntries(entries.map(([key, inner]) => [key, withoutUndefined(inner)]));
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

function otherLanes(lanes: Config["lanes"], { strategy }: Settings["scheduler"]): Lane[] {
  return Object.entries(lanes).map(([name, { concurrency, total = null }]) => ({
    name,
    concurrency,
    total,
    perAgent: null,
    strategy,
  }));
}
