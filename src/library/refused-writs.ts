import type { Executor } from "../executors/executor.ts";
import type { Log } from "../model/log.ts";
import type { Task } from "../model/task.ts";
import { errorBlock } from "../schedules/writ-answer.ts";
import { ANSWER_WRITS_MAX, withBlocks, writsInAnswer } from "./answer-writs.ts";

/**
 * An executor that does the same, for an agent without `writs`: nothing that its answer asks for is carried out, and the
 * answer says so, since a model that hears nothing takes its reminder for made.
 */
export function refusingWrits(executor: Executor, log: Log): Executor {
  return async (task, context) => withRefusals(task, await executor(task, context), log);
}

/** Never throws: the work is done. */
function withRefusals({ taskId, agentId }: Task, result: unknown, log: Log): unknown {
  try {
    const found = writsInAnswer(result);
    if (found === null) return result;
    const reason = `agent "${agentId}" may not schedule anything in its answers: its \`writs\` must be true for that`;
    const blocks = found.writs.slice(0, ANSWER_WRITS_MAX).map((writ) => errorBlock(writ, reason));
    return withBlocks(found.value, blocks) ?? result;
  } catch (error) {
    log.error({ error, taskId }, "the writs of an answer could not be refused");
    return result;
  }
}
