import type { z } from "zod";
import { check, faultsError } from "../../config/check.ts";
import { withoutZeros } from "../../config/kept-values.ts";
import { saidLanes } from "../../config/lanes-schema.ts";
import { unknownOption } from "../../config/option-kinds.ts";
import { type Config, configSchema } from "../../config/schema.ts";
import { webhookOptions } from "../../config/webhooks-schema.ts";
import type { ReloadOptions, RotaOptions } from "../../interface/options.ts";
import { isObject } from "../../model/input/field-checks.ts";
import { DEFAULT_LANES, type Lane, slotsPerTenant, TASKS_LANE } from "../../model/lane.ts";
import { Redactor } from "../../model/redactor.ts";
import type { RetryPolicy } from "../../model/retry-policy.ts";
import type { SessionSettings } from "../../model/session.ts";
import type { TaskKind } from "../../model/task.ts";
import { webhookKey } from "../../model/webhook-secret.ts";
import type { OutboundTargets } from "../../outbound/target-guard.ts";
import type { AdmissionLimits, LaneSetting } from "../../storage/storage.ts";
import type { Agent, ExecutorDependencies, MadeExecutor } from "../registries/agent.ts";
import { readAgents, readExecutors } from "../registries/configured-agents.ts";

/** How long ended tasks are kept. */
const DEFAULT_TTL_SEC = { memory: 300, durable: 30 * 24 * 60 * 60 } as const;

const DAY_MS = 24 * 60 * 60 * 1_000;

/** The options with every default filled in. */
export interface Settings {
  /** In the form of the configuration. */
  readonly options: SharedOptions;
  readonly scheduler: Config["scheduler"];
  readonly limits: AdmissionLimits;
  /** The built-in lanes and those of the configuration. Users may have stored more: see lane-table.ts. */
  readonly lanes: readonly Lane[];
  /** Whether the configuration describes the lane `tasks`, so that users cannot change it. */
  readonly describesTasksLane: boolean;
  /** Defaults for sessions without settings of their own. */
  readonly sessions: SessionSettings & { readonly steerMs: number };
  readonly retryPolicy: RetryPolicy;
  readonly timeoutMs: number;
  readonly timeoutMaxMs: number;
  readonly shutdownGraceMs: number;
  readonly storageWaitMs: number;
  readonly runRetentionMs: number;
  readonly auditRetentionMs: number;
  readonly resultTTLSec: (storage: { readonly durable: boolean }) => number;
  /** The hosts that callbacks, and executors of agents made over HTTP, may and must not call. */
  readonly outbound: OutboundTargets;
  /** Signs callbacks; null: they are not signed. */
  readonly webhookKey: Uint8Array | null;
  /** Masks secrets in everything that is read. */
  readonly redactor: Redactor;
  readonly agents: ReadonlyMap<string, Agent>;
  readonly executors: ReadonlyMap<TaskKind, MadeExecutor>;
}

/** What the library shares with the configuration file; executors may be functions here and are checked where they are made. */
const sharedSchema = configSchema
  .omit({ server: true, log: true, agents: true, executors: true })
  .extend({ lanes: saidLanes.prefault({}), webhooks: webhookOptions.prefault({}) });
type SharedOptions = z.output<typeof sharedSchema>;

/** Checks the options and completes them. Throws one `invalid_field` that names everything to write instead. */
export function resolveSettings(options: RotaOptions, executorDependencies: ExecutorDependencies): Settings {
  return resolve(options, said(options), executorDependencies);
}

/**
 * The same for options that replace `before`: a section that is left out keeps its values. In `scheduler`, `sessions`,
 * `schedules`, `retry`, `timeouts`, `tenants`, `bounds` and `audit`, so does an option that is left out.
 */
export function resolveAgain(
  options: ReloadOptions,
  before: Settings,
  executorDependencies: ExecutorDependencies,
): Settings {
  const given = said(options);
  const merged = {
    ...before.options,
    ...given,
    scheduler: over(before.options.scheduler, given["scheduler"]),
    sessions: over(before.options.sessions, given["sessions"]),
    schedules: over(before.options.schedules, given["schedules"]),
    retry: over(before.options.retry, given["retry"]),
    timeouts: over(before.options.timeouts, given["timeouts"]),
    tenants: over(before.options.tenants, given["tenants"]),
    bounds: over(before.options.bounds, given["bounds"]),
    audit: over(before.options.audit, given["audit"]),
  };
  return resolve(options, merged, executorDependencies, before);
}

function over(before: object, given: unknown): unknown {
  if (given === undefined) return before;
  return isObject(given) ? { ...before, ...given } : given;
}

/** Checks everything before it throws. */
function resolve(
  options: RotaOptions,
  given: unknown,
  executorDependencies: ExecutorDependencies,
  before?: Settings,
): Settings {
  const faults: string[] = [...unknownNames(options), ...estimatorFaults(options)];
  const checked = check(sharedSchema, given);
  if (!checked.ok) faults.push(...checked.faults.map(({ message }) => message));
  const executors = readExecutors(options.executors, {
    ...executorDependencies,
    before: before?.executors,
    faults,
  });
  const agents = readAgents(options.agents, { ...executorDependencies, before: before?.agents, faults });
  if (!checked.ok || faults.length > 0) throw faultsError(faults);
  const describesTasksLane =
    before?.describesTasksLane || namesTasksLane(options, { isStart: before === undefined });
  return { ...toSettings(checked.value), describesTasksLane, agents, executors };
}

/** The options of `scheduler` that describe the lane `tasks`. A reload does not apply `workerCount`. */
const TASKS_LANE_OPTIONS = ["maxInflight", "maxPerAgentInflight"];
const TASKS_LANE_OPTIONS_AT_START = ["workerCount", ...TASKS_LANE_OPTIONS];

function namesTasksLane(options: RotaOptions, { isStart }: { isStart: boolean }): boolean {
  const scheduler = said(options)["scheduler"];
  const names = isStart ? TASKS_LANE_OPTIONS_AT_START : TASKS_LANE_OPTIONS;
  return isObject(scheduler) && names.some((name) => Object.hasOwn(scheduler, name));
}

/** The settings with other options. */
export function withOptions(settings: Settings, options: SharedOptions): Settings {
  return { ...settings, ...toSettings(options) };
}

function toSettings(options: SharedOptions): Omit<Settings, "describesTasksLane" | "agents" | "executors"> {
  const { scheduler, sessions, schedules, retry, timeouts, outbound, webhooks, audit, shutdownGraceSec } =
    options;
  const storageWaitMs = options.storageWaitSec * 1_000;
  return {
    options,
    scheduler,
    limits: admissionLimits(scheduler),
    lanes: [tasksLane(options), ...otherLanes(options)],
    sessions,
    retryPolicy: retry,
    timeoutMs: Math.min(timeouts.defaultMs, timeouts.maxMs),
    timeoutMaxMs: timeouts.maxMs,
    shutdownGraceMs: shutdownGraceSec * 1_000,
    storageWaitMs,
    runRetentionMs: schedules.runRetentionDays * DAY_MS,
    auditRetentionMs: audit.retentionDays * DAY_MS,
    outbound: { allow: [...outbound.allow, ...webhooks.allow], deny: outbound.deny },
    webhookKey: webhooks.secret === undefined ? null : webhookKey(webhooks.secret),
    redactor: new Redactor(options.redact),
    resultTTLSec: ({ durable }) => scheduler.resultTTLSec ?? DEFAULT_TTL_SEC[durable ? "durable" : "memory"],
  };
}

const SHARED_NAMES = Object.keys(sharedSchema.shape);
const OPTION_NAMES = [...SHARED_NAMES, "agents", "executors", "estimateTokens", "log", "clock", "random"];

function unknownNames(options: RotaOptions): string[] {
  const unknown = Object.keys(options).filter((name) => !OPTION_NAMES.includes(name));
  return unknown.map((name) => unknownOption(name, OPTION_NAMES));
}

function estimatorFaults({ estimateTokens }: RotaOptions): string[] {
  if (estimateTokens === undefined || typeof estimateTokens === "function") return [];
  return ["`estimateTokens` must be a function that takes the key of a session"];
}

function shared(options: RotaOptions): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(options).filter(([name]) => SHARED_NAMES.includes(name)));
}

/** The options without those that count as left out. */
function said(options: RotaOptions): Readonly<Record<string, unknown>> {
  const given = withoutUndefined(shared(options)) as Readonly<Record<string, unknown>>;
  if (given["scheduler"] === undefined) return given;
  return { ...given, scheduler: withoutZeros(given["scheduler"]) };
}

/** In a program, unlike in a file, an option can be undefined: it counts as left out. */
function withoutUndefined(value: unknown): unknown {
  if (!isObject(value)) return value;
  const entries = Object.entries(value).filter(([, inner]) => inner !== undefined);
  return Object.fromEntries(entries.map(([key, inner]) => [key, withoutUndefined(inner)]));
}

/** The smallest default of `maxQueueSizeTotal`. */
const MAX_QUEUE_SIZE_TOTAL = 100_000;

/** By default the full queues of two tenants fit into the total. */
function admissionLimits({
  maxQueueSize,
  maxQueueSizeTotal = Math.max(MAX_QUEUE_SIZE_TOTAL, 2 * maxQueueSize),
  maxPerAgent,
}: Settings["scheduler"]): AdmissionLimits {
  return { maxQueueSize, maxQueueSizeTotal, maxPerAgent };
}

function tasksLane(options: SharedOptions): Lane {
  const { workerCount: concurrency, maxInflight: total, maxPerAgentInflight: perAgent } = options.scheduler;
  return { ...toLane({ name: TASKS_LANE, concurrency, total }, options), perAgent };
}

function otherLanes(options: SharedOptions): Lane[] {
  const always = Object.entries(DEFAULT_LANES).map(([name, concurrency]) => [name, { concurrency }]);
  const all: SharedOptions["lanes"] = { ...Object.fromEntries(always), ...options.lanes };
  return Object.entries(all).map(([name, { concurrency, total = null }]) =>
    toLane({ name, concurrency, total }, options),
  );
}

/** A lane with defaults for everything else. */
export function toLane(
  setting: LaneSetting,
  { scheduler, tenants }: Pick<SharedOptions, "scheduler" | "tenants">,
): Lane {
  const perTenant = slotsPerTenant(setting.total, tenants.maxLaneShare);
  return { ...setting, perAgent: null, perTenant, ...orderIn(scheduler) };
}

/** The options that decide, in every lane, which task starts first. */
function orderIn({ strategy, agingSec }: Settings["scheduler"]): Pick<Lane, "strategy" | "agingMs"> {
  return { strategy, agingMs: agingSec * 1_000 };
}
