import { createExecutor } from "../executors/create-executor.ts";
import { echo } from "../executors/echo.ts";
import type { Executor, ExecutorConfig } from "../executors/executor.ts";
import type { AgentOptions } from "../interface/options.ts";
import type { Clock } from "../model/clock.ts";
import { checkKnown, optionalNumber, optionalObject, optionalText } from "../model/field-checks.ts";
import { DEFAULT_AGENT, TASK_KINDS, type TaskKind } from "../model/task.ts";
import { checkAgentId } from "../model/task-input.ts";
import type { TaskRecord } from "../model/task-record.ts";

/** More than this at once is a slip of the finger. */
const LIMIT = { min: 1, max: 10_000_000 } as const;

interface Agent {
  readonly executor: Executor | undefined;
  readonly lane: string | undefined;
  readonly maxInflight: number | null;
  readonly maxQueued: number | null;
}

export interface AgentsOptions {
  readonly agents: Readonly<Record<string, AgentOptions>>;
  readonly executors: Readonly<Partial<Record<TaskKind, Executor | ExecutorConfig>>>;
  readonly clock: Clock;
}

/** The agents this process knows, and who does their work. */
export class Agents {
  readonly #agents = new Map<string, Agent>();
  readonly #byKind = new Map<TaskKind, Executor>();
  readonly #clock: Clock;

  constructor({ agents, executors, clock }: AgentsOptions) {
    this.#clock = clock;
    checkKnown(executors, TASK_KINDS, "executors.");
    for (const [kind, executor] of Object.entries(executors)) {
      this.#byKind.set(kind as TaskKind, createExecutor(executor, { clock, name: `executors.${kind}` }));
    }
    for (const [id, options] of Object.entries(agents)) this.set(id, options);
  }

  /** Throws `invalid_field` for what cannot be. */
  set(id: string, options: AgentOptions): void {
    const prefix = `agents.${checkAgentId(id)}.`;
    const fields = optionalObject({ [`agents.${id}`]: options }, `agents.${id}`) ?? {};
    checkKnown(fields, ["executor", "lane", "maxInflight", "maxQueued"], prefix);
    const { executor } = options;
    this.#agents.set(id, {
      executor:
        executor === undefined
          ? undefined
          : createExecutor(executor, { clock: this.#clock, name: `${prefix}executor` }),
      lane: optionalText(fields, "lane"),
      maxInflight: optionalNumber(fields, "maxInflight", LIMIT, prefix) ?? null,
      maxQueued: optionalNumber(fields, "maxQueued", LIMIT, prefix) ?? null,
    });
  }

  laneOf(id: string): string | undefined {
    return this.#agents.get(id)?.lane;
  }

  /** Null: no bound of its own. */
  maxInflight(id: string): number | null {
    return this.#agents.get(id)?.maxInflight ?? null;
  }

  /** Null: the limit for all agents holds. */
  maxQueued(id: string): number | null {
    return this.#agents.get(id)?.maxQueued ?? null;
  }

  ids(): string[] {
    return [...this.#agents.keys()];
  }

  /** The agent's own, else that of the kind; the agent that always exists answers its input if it has neither. */
  executorFor({ agent, spec }: TaskRecord): Executor | undefined {
    return (
      this.#agents.get(agent)?.executor ??
      this.#byKind.get(spec.work.kind) ??
      (agent === DEFAULT_AGENT ? echo : undefined)
    );
  }
}
