import type { Executor } from "../../executors/executor.ts";
import type { Log } from "../../model/log.ts";
import type { Task } from "../../model/task.ts";
import { errorBlock } from "../../schedules/writ-answer.ts";
import { ANSWER_WRITS_MAX, withBlocks, writsInAnswer } from "./answer-writs.ts";

/**
 * Wraps executors of agents without `writs`. No writ of a result is carried out, and the result says so: a model that gets no
 * reply assumes that its reminder is set. Every task comes through here. So each executor is wrapped only once, and a result
 * that is not a promise is not awaited.
 */
export function refusingWrits(log: Log): (executor: Executor) => Executor {
  const wrapped = new WeakMap<Executor, Executor>();
  return (executor) => {
    const known = wrapped.get(executor);
    if (known !== undefined) return known;
    const refusing: Executor = (task, context) => {
      const result: unknown = executor(task, context);
      if (!(result instanceof Promise)) return withRefusals(task, result, log);
      return result.then((value: unknown) => withRefusals(task, value, log));
    };
    wrapped.set(executor, refusing);
    return refusing;
  };
}

/** Never throws: the task has succeeded. */
function withRefusals({ taskId, agentId }: Task, result: unknown, log: Log): unknown {
  try {
    const found = writsInAnswer(result);
    if (found === null) return result;
    const reason = `agent "${agentId}" is not allowed to schedule work: set \`writs: true\` on the agent`;
    const blocks = found.writs.slice(0, ANSWER_WRITS_MAX).map((writ) => errorBlock(writ, reason));
    return withBlocks(found.value, blocks) ?? result;
  } catch (error) {
    log.error({ error, taskId }, "could not add the refusals of writs to an answer");
    return result;
  }
}
