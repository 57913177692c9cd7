import { checkJson, RESULT_BYTES_MAX } from "../../engine/work/result-json.ts";
import type { Executor } from "../../executors/executor.ts";
import { DEFAULT_AGENT } from "../../model/agent.ts";
import { DEFAULT_PRIORITY } from "../../model/priority.ts";
import type { TaskRecord } from "../../model/task-record.ts";
import { hideTaskTokensIn } from "../../model/text/task-token-mask.ts";
import type { Storage } from "../../storage/storage.ts";

export interface PostedAnswersOptions {
  readonly storage: Storage;
  /** How many tasks of a session run at once, by default. */
  readonly maxConcurrent: () => number;
}

/**
 * Wraps the executor of a task whose answer is added to a session. The answer is stored there before the task ends: if its
 * attempt is lost in between, the next one finds it there and adds nothing.
 */
export function postingAnswers(
  options: PostedAnswersOptions,
): (executor: Executor, record: TaskRecord) => Executor {
  return (executor, record) => async (task, context) => {
    const result = await executor(task, context);
    const checked = checkJson("result", result, RESULT_BYTES_MAX);
    context.signal.throwIfAborted();
    if (checked.ok && !(await postAnswer(options, record, checked.value))) {
      context.log.warn({}, "the answer was not added to the session: the session belongs to another agent");
    }
    return result;
  };
}

/** False: the session has become that of an agent which the maker of the task does not reach. */
async function postAnswer(
  { storage, maxConcurrent }: PostedAnswersOptions,
  { id, tenant, agent, lane, schedule, spec }: TaskRecord,
  result: unknown,
): Promise<boolean> {
  if (spec.postTo === undefined) return true;
  const session = await storage.sessions.get({ tenant, key: spec.postTo });
  // The answer becomes a turn of that agent, which takes it for its own words.
  const owner = session === null ? agent : (session.agent ?? DEFAULT_AGENT);
  if (spec.reach !== undefined && !spec.reach.includes(owner)) return false;
  const { postTo: key, ...posted } = spec;
  await storage.sessions.post({
    task: {
      id: `${id}-answer`,
      tenant,
      // The agent of the session reads it as one of its turns.
      agent: session?.agent ?? agent,
      lane,
      priority: DEFAULT_PRIORITY,
      runAt: null,
      deadline: null,
      deadlineAfterMs: null,
      maxRetriesIfLost: 0,
      maxQueued: null,
      origin: "message",
      schedule,
      session: { key, maxConcurrent: maxConcurrent() },
      preemptible: false,
      concurrencyKey: null,
      batch: null,
      callbackUrl: null,
      dependsOn: [],
      idempotency: null,
      spec: posted,
    },
    // The result of the task itself is masked when the task ends.
    result: hideTaskTokensIn(result),
  });
  return true;
}
