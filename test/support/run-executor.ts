import { createExecutor } from "../../src/executors/create-executor.ts";
import type { ExecutorConfig, ExecutorContext, Usage } from "../../src/executors/executor.ts";
import type { Task } from "../../src/model/task.ts";
import type { TargetGuard } from "../../src/outbound/target-guard.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";
import { RecordingLog } from "./recording-log.ts";

export interface RunnableOptions {
  readonly guard?: TargetGuard | undefined;
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

export interface RunnableExecutor {
  /** Hands a task to it, as the runner would. */
  run(task: Partial<Task>, signal?: AbortSignal, tenantId?: string): Promise<unknown>;
  readonly clock: ManualClock;
  readonly log: RecordingLog;
  /** What it reported, in order. */
  readonly progress: unknown[];
  readonly usage: Usage[];
}

/** The executor that a configuration describes, with time standing still. */
export function runnable(config: ExecutorConfig, options: RunnableOptions = {}): RunnableExecutor {
  const clock = new ManualClock();
  const log = new RecordingLog();
  const progress: unknown[] = [];
  const usage: Usage[] = [];
  const executor = createExecutor(config, { clock, ...options });
  return {
    clock,
    log,
    progress,
    usage,
    async run(task, signal = new AbortController().signal, tenantId = "default") {
      const context: ExecutorContext = {
        tenantId,
        signal,
        log,
        progress: (data) => progress.push(data),
        usage: (reported) => usage.push(reported),
      };
      return executor(
        { taskId: "tsk_1", agentId: "agent", attempts: [], ...task } as unknown as Task,
        context,
      );
    },
  };
}
