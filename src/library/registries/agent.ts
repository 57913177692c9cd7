import { isDeepStrictEqual } from "node:util";
import type { Environment } from "../../config/process-environment.ts";
import { createExecutor } from "../../executors/create-executor.ts";
import type { Executor, ExecutorConfig } from "../../executors/executor.ts";
import type { AgentOptions } from "../../interface/options.ts";
import type { Clock } from "../../model/clock.ts";
import { RotaError } from "../../model/errors.ts";
import {
  checkKnown,
  optionalBoolean,
  optionalNumber,
  optionalObject,
  optionalText,
} from "../../model/input/field-checks.ts";
import type { TargetGuard } from "../../outbound/target-guard.ts";

/** More than this is a typing mistake. */
const LIMIT = { min: 1, max: 10_000_000 } as const;

export const AGENT_FIELDS = [
  "executor",
  "lane",
  "maxInflight",
  "maxQueued",
  "contextWindow",
  "writs",
] as const;

/** An agent as this process knows it. */
export interface Agent {
  /** Its options as they were given. */
  readonly options: AgentOptions;
  readonly made: MadeExecutor | undefined;
  readonly lane: string | undefined;
  /** Null: it has no limit of its own. */
  readonly maxInflight: number | null;
  /** Null: the limit for all agents applies. */
  readonly maxQueued: number | null;
  /** The context window of its model in tokens; undefined: not set. */
  readonly contextWindow: number | undefined;
  /** Whether Rota carries out `/schedule` lines in its results. */
  readonly writs: boolean;
  /** Why this process cannot use the stored agent; left out: it can. */
  readonly unusable?: string;
}

/** An agent without a description. */
export const UNDESCRIBED: Agent = {
  options: {},
  made: undefined,
  lane: undefined,
  maxInflight: null,
  maxQueued: null,
  contextWindow: undefined,
  writs: false,
};

/** An executor and its configuration. */
export interface MadeExecutor {
  readonly config: Executor | ExecutorConfig;
  readonly executor: Executor;
}

/** What every executor is made with. */
export interface ExecutorDependencies {
  readonly clock: Clock;
  /** The variables of this process; left out: none. */
  readonly environment?: Environment;
}

export interface MakeExecutorParams extends ExecutorDependencies {
  /** Decides which hosts it may call, if a user described it. */
  readonly guard?: TargetGuard;
  /** The previous executor. It is kept, with its caches, if its configuration is the same. */
  readonly before?: MadeExecutor | undefined;
}

export interface ReadAgentParams extends MakeExecutorParams {
  /** The prefix of field names in faults, as in `agents.research.lane`. */
  readonly prefix: string;
  /** Collects all faults. */
  readonly faults: RotaError[];
}

/** Checks the options of an agent. If it adds a fault, the returned agent must not be used. */
export function readAgent(given: AgentOptions, { prefix, faults, ...params }: ReadAgentParams): Agent {
  const name = prefix.replace(/\.$/, "");
  const fields = attempt(faults, () => optionalObject({ [name]: given }, name)) ?? {};
  const { executor, ...others } = fields as AgentOptions;
  attempt(faults, () => checkKnown(fields, AGENT_FIELDS, prefix));
  const made = attempt(faults, () => makeExecutor(executor, `${prefix}executor`, params));
  const [lane, writs] = [`${prefix}lane`, `${prefix}writs`] as const;
  return {
    // A copy, since the caller may change its object and pass it again.
    options: { ...others, ...(made === undefined ? {} : { executor: made.config }) },
    made,
    lane: attempt(faults, () => optionalText({ [lane]: fields["lane"] }, lane)),
    maxInflight: attempt(faults, () => optionalNumber(fields, "maxInflight", LIMIT, prefix)) ?? null,
    maxQueued: attempt(faults, () => optionalNumber(fields, "maxQueued", LIMIT, prefix)) ?? null,
    contextWindow: attempt(faults, () => optionalNumber(fields, "contextWindow", LIMIT, prefix)),
    writs: attempt(faults, () => optionalBoolean({ [writs]: fields["writs"] }, writs)) ?? false,
  };
}

/** Throws `invalid_field`. `name` is the name of the field with the configuration. */
export function makeExecutor(
  config: Executor | ExecutorConfig | undefined,
  name: string,
  { before, ...params }: MakeExecutorParams,
): MadeExecutor | undefined {
  if (config === undefined) return undefined;
  if (before !== undefined && isDeepStrictEqual(config, before.config)) return before;
  const executor = createExecutor(config, { ...params, name });
  return { config: typeof config === "function" ? config : structuredClone(config), executor };
}

/** Returns what `work` returns. If it throws a `RotaError`, adds that to `faults` and returns undefined. */
export function attempt<T>(faults: RotaError[], work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof RotaError)) throw error;
    faults.push(error);
    return undefined;
  }
}
