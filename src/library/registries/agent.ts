import { isDeepStrictEqual } from "node:util";
import type { Environment } from "../../config/process-environment.ts";
import { createExecutor } from "../../executors/create-executor.ts";
import type { Executor, ExecutorConfig } from "../../executors/executor.ts";
import type { AgentOptions } from "../../interface/options.ts";
import type { Bounds } from "../../model/bounds.ts";
import type { Clock } from "../../model/clock.ts";
import { RotaError } from "../../model/errors.ts";
import { AGENT_FIELDS } from "../../model/input/agent-schema.ts";
import { checkObject, invalidField } from "../../model/input/field-checks.ts";
import { readInto } from "../../model/input/read-fields.ts";
import type { Reading, ReadOf } from "../../model/input/schema.ts";
import type { TargetGuard } from "../../outbound/target-guard.ts";

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
  /** The labels that a worker needs to run it; undefined: none. */
  readonly require: { readonly labels: Readonly<Record<string, string>> } | undefined;
  /** Whether Rota carries out `/schedule` lines in its results. */
  readonly writs: boolean;
  /** The agents that its tasks may submit to, besides itself; `*`: all. */
  readonly delegates: readonly string[];
  /** Whether an executor of type `http` gets the task token. */
  readonly taskToken: boolean;
  readonly bounds: Bounds | undefined;
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
  require: undefined,
  writs: false,
  delegates: [],
  taskToken: false,
  bounds: undefined,
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
  const options = attempt(faults, () => checkObject(given, name) as AgentOptions) ?? {};
  const reading: Reading = { faults: [], limits: {} };
  const fields: ReadOf<typeof AGENT_FIELDS> = readInto(
    { fields: AGENT_FIELDS },
    { ...options },
    prefix,
    reading,
  );
  faults.push(...reading.faults.map(({ field, message }) => invalidField(field, message)));
  const { executor, ...others } = options;
  const made = attempt(faults, () => makeExecutor(executor, `${prefix}executor`, params));
  const { lane, maxInflight = null, maxQueued = null, contextWindow, require, writs = false } = fields;
  const { delegates = [], taskToken = false, bounds } = fields;
  return {
    // A copy, since the caller may change its object and pass it again.
    options: { ...others, ...(made === undefined ? {} : { executor: made.config }) },
    made,
    lane,
    maxInflight,
    maxQueued,
    contextWindow,
    require,
    writs,
    delegates,
    taskToken,
    bounds,
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
