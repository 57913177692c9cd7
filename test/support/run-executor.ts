import { createExecutor } from "../../src/executors/create-executor.ts";
import type { ExecutorConfig, ExecutorContext } from "../../src/executors/executor.ts";
import { silentLog } from "../../src/model/log.ts";
import type { Task } from "../../src/model/task.ts";
import type { TargetGuard } from "../../src/outbound/target-guard.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";

export interface RunnableExecutor {
  /** Hands a task to it, as the runner would. */
  run(task: Partial<Task>, signal?: AbortSignal): Promise<unknown>;
  readonly clock: ManualClock;
}

/** The executor that a configuration describes, with time standing still. */
export function runnable(config: ExecutorConfig, guard?: TargetGuard): RunnableExecutor {
  const clock = new ManualClock();
  const executor = createExecutor(config, { clock, ...(guard && { guard }) });
  return {
    clock,
    async run(task, signal = new AbortController().signal) {
      const context: ExecutorContext = { signal, log: silentLog, progress: () => {}, usage: () => {} };
      return executor({ taskId: "tsk_1", agentId: "agent", ...task } as Task, context);
    },
  };
}
