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

/** More than this at once is a slip of the finger. */
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
  /** What was said of it. */
  readonly options: AgentOptions;
  readonly made: MadeExecutor | undefined;
  readonly lane: string | undefined;
  /** Null: no bound of its own. */
  readonly maxInflight: number | null;
  /** Null: the limit for all agents holds. */
  readonly maxQueued: number | null;
  /** How many tokens its model takes in at most; undefined: it does not say. */
  readonly contextWindow: number | undefined;
  /** Whether `/schedule` lines in its answers are carried out. */
  readonly writs: boolean;
  /** Why this process cannot use what is stored of it; left out: it can. */
  readonly unusable?: string;
}

/** An agent of which nothing is said. */
export const UNDESCRIBED: Agent = {
  options: {},
  made: undefined,
  lane: undefined,
  maxInflight: null,
  maxQueued: null,
  contextWindow: undefined,
  writs: false,
};

/** An executor and what was said of it. */
export interface MadeExecutor {
  readonly config: Executor | ExecutorConfig;
  readonly executor: Executor;
}

/** What every executor is made with, whatever is said of it. */
export interface ExecutorDependencies {
  readonly clock: Clock;
  /** The variables of this process; left out: none. */
  readonly environment?: Environment;
}

export interface MakeExecutorParams extends ExecutorDependencies {
  /** What it may call, where a user described it. */
  readonly guard?: TargetGuard;
  /** As it was: one of which the same is said stays the one it is, with all it knows. */
  readonly before?: MadeExecutor | undefined;
}

export interface ReadAgentParams extends MakeExecutorParams {
  /** Goes before the names of fields, as in `agents.research.lane`. */
  readonly prefix: string;
  /** Takes everything that is wrong. */
  readonly faults: RotaError[];
}

/** Checks what is said of an agent. With a fault, the answer is of no use. */
export function readAgent(given: AgentOptions, { prefix, faults, ...params }: ReadAgentParams): Agent {
  const name = prefix.replace(/\.$/, "");
  const fields = attempt(faults, () => optionalObject({ [name]: given }, name)) ?? {};
  const { executor, ...others } = fields as AgentOptions;
  attempt(faults, () => checkKnown(fields, AGENT_FIELDS, prefix));
  const made = attempt(faults, () => makeExecutor(executor, `${prefix}executor`, params));
  const [lane, writs] = [`${prefix}lane`, `${prefix}writs`] as const;
  return {
    // A copy, since whoever handed it in may change it and hand it in again.
    options: { ...others, ...(made === undefined ? {} : { executor: made.config }) },
    made,
    lane: attempt(faults, () => optionalText({ [lane]: fields["lane"] }, lane)),
    maxInflight: attempt(faults, () => optionalNumber(fields, "maxInflight", LIMIT, prefix)) ?? null,
    maxQueued: attempt(faults, () => optionalNumber(fields, "maxQueued", LIMIT, prefix)) ?? null,
    contextWindow: attempt(faults, () => optionalNumber(fields, "contextWindow", LIMIT, prefix)),
    writs: attempt(faults, () => optionalBoolean({ [writs]: fields["writs"] }, writs)) ?? false,
  };
}

/** Throws `invalid_field`. `name` is what the field that describes it is called. */
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

/** What `work` answers; undefined, and one fault more, if it throws one. */
export function attempt<T>(faults: RotaError[], work: () => T): T | undefined {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof RotaError)) throw error;
    faults.push(error);
    return undefined;
  }
}
