import { createExecutor } from "../../src/executors/create-executor.ts";
import type { ExecutorConfig, ExecutorContext, TaskSession, Usage } from "../../src/executors/executor.ts";
import type { Task } from "../../src/model/task.ts";
import type { TargetGuard } from "../../src/outbound/target-guard.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";
import { RecordingLog } from "./recording-log.ts";

export interface RunnableOptions {
  /** Whether the agent has `taskToken`. */
  readonly sendsTaskToken?: boolean;
  readonly guard?: TargetGuard | undefined;
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** What the agent says its model takes in. */
  readonly contextWindow?: number;
  /** The session of every task that has a `sessionKey`: an empty one by default. */
  readonly session?: Partial<TaskSession>;
  /** Signs requests; by default none is signed. */
  readonly sign?: ExecutorContext["sign"];
}

export interface RunnableExecutor {
  /** Hands a task to it, as the runner would. */
  run(task: Partial<Task>, signal?: AbortSignal, tenantId?: string): Promise<unknown>;
  readonly clock: ManualClock;
  readonly log: RecordingLog;
  /** What it reported, in order. */
  readonly progress: unknown[];
  readonly usage: Usage[];
  /** How many turns of the session it asked for, each time. */
  readonly turnsAsked: number[];
  /** The bytes it said it holds, each time. */
  readonly held: number[];
}

/** The task token of every attempt. */
export const TASK_TOKEN = `rtt_${"t".repeat(20)}.${"s".repeat(43)}`;

async function unexpected(): Promise<never> {
  throw new Error("Executors of configurations make nothing.");
}

/** The executor that a configuration describes, with time standing still. */
export function runnable(config: ExecutorConfig, options: RunnableOptions = {}): RunnableExecutor {
  const clock = new ManualClock();
  const log = new RecordingLog();
  const progress: unknown[] = [];
  const usage: Usage[] = [];
  const turnsAsked: number[] = [];
  const held: number[] = [];
  const { guard, environment = {}, contextWindow, session, sign = () => null } = options;
  const { sendsTaskToken = false } = options;
  const executor = createExecutor(config, { clock, guard, environment });
  return {
    clock,
    log,
    progress,
    usage,
    turnsAsked,
    held,
    async run(task, signal = new AbortController().signal, tenantId = "default") {
      const context: ExecutorContext = {
        tenantId,
        signal,
        log,
        progress: (data) => progress.push(data),
        usage: (reported) => usage.push(reported),
        contextWindow,
        messages: async () => [],
        async session({ turns = 0 } = {}) {
          turnsAsked.push(turns);
          if (task.sessionKey === undefined) return null;
          return { generation: 0, contextWindow: null, turns: [], ...session };
        },
        sign,
        holds: (bytes) => held.push(bytes),
        taskToken: TASK_TOKEN,
        sendsTaskToken,
        submit: unexpected,
        schedule: unexpected,
        say: unexpected,
      };
      return executor(
        { taskId: "tsk_1", agentId: "agent", attempts: [], ...task } as unknown as Task,
        context,
      );
    },
  };
}
