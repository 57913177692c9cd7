import type { Executor } from "../../executors/executor.ts";
import { RotaError } from "../../model/errors.ts";
import type { Log } from "../../model/log.ts";
import type { Provenance } from "../../model/provenance.ts";
import type { Task } from "../../model/task.ts";
import { nextMoments } from "../../schedules/moments.ts";
import { parseSchedule } from "../../schedules/schedule-input.ts";
import type { CreateWrit, InvalidWrit, Writ } from "../../schedules/writ.ts";
import { errorBlock } from "../../schedules/writ-answer.ts";
import { localZone } from "../../schedules/zone.ts";
import type { StorageClock } from "../../services/storage-clock.ts";
import type { Storage } from "../../storage/storage.ts";
import { ANSWER_WRITS_MAX, withBlocks, writsInAnswer } from "./answer-writs.ts";
import type { WritRunner } from "./writ-runner.ts";

/*
 * A model writes these lines, perhaps because of a prompt injection, and the schedules may create more schedules. So there are
 * limits: writs per result, the shortest interval, and active schedules per agent.
 */

/** The shortest interval of a recurring schedule. */
const STEP_MIN_MS = 60_000;
/** How many due times are compared: in this many, a cron expression has shown its shortest interval. */
const STEPS_LOOKED_AT = 100;
/** With this many active schedules of the agent, of any origin, a result cannot create another. */
const AGENT_SCHEDULES_MAX = 100;

export interface WritAnswersOptions {
  readonly tenant: string;
  readonly storage: Storage;
  readonly storageClock: StorageClock;
  readonly runner: WritRunner;
  readonly log: Log;
}

/** Carries out the writs in results of agents with `writs`, and adds their outcome to each result. */
export class WritAnswers {
  readonly #options: WritAnswersOptions;

  constructor(options: WritAnswersOptions) {
    this.#options = options;
  }

  /** Wraps an executor: carries out the writs in its result. */
  after(executor: Executor): Executor {
    return async (task, context) => this.#answer(task, await executor(task, context), context.signal);
  }

  /** Never throws: the task has succeeded, even if its writs fail. */
  async #answer(task: Task, result: unknown, signal: AbortSignal): Promise<unknown> {
    try {
      const found = writsInAnswer(result);
      if (found === null) return result;
      const withReplies = withBlocks(found.value, await this.#carryOutAll(found.writs, task, signal));
      if (withReplies !== null) return withReplies;
      this.#options.log.warn({ taskId: task.taskId }, "an answer has no room for the responses to its writs");
    } catch (error) {
      this.#options.log.error(
        { error, taskId: task.taskId },
        "the writs of an answer could not be carried out",
      );
    }
    return result;
  }

  async #carryOutAll(
    writs: readonly (Writ | InvalidWrit)[],
    task: Task,
    signal: AbortSignal,
  ): Promise<string[]> {
    const { runner } = this.#options;
    const { taskId, agentId: agent, sessionKey, conversationId } = task;
    const provenance = ofAnswer(task);
    const check = (writ: CreateWrit) => this.#check(writ, agent);
    const blocks: string[] = [];
    let made = 0;
    for (const writ of writs.slice(0, ANSWER_WRITS_MAX)) {
      // Another node may run the task by now, or a caller has cancelled it: this attempt must not act any more.
      if (signal.aborted) return blocks;
      if (writ.kind === "create") made += 1;
      // A task may run again because its end was not stored. The same source makes that idempotent.
      const source = `writ:${taskId}:${made}`;
      const conversation = { sessionKey: sessionKey ?? null, conversationId: conversationId ?? null };
      blocks.push((await runner.carryOut(writ, { agent, ...conversation, source, provenance, check })).block);
    }
    const [next, ...others] = writs.slice(ANSWER_WRITS_MAX);
    if (next !== undefined) blocks.push(errorBlock(next, tooMany(others.length)));
    return blocks;
  }

  /** Throws if a result must not create this schedule. */
  async #check({ phrase }: CreateWrit, agent: string): Promise<void> {
    if (this.#isTooOften(phrase)) {
      const most = `an answer can ask for every ${STEP_MIN_MS / 1_000} seconds at most`;
      throw new RotaError("invalid_field", `"${phrase}" is too often: ${most}`);
    }
    const { tenant, storage } = this.#options;
    const limit = AGENT_SCHEDULES_MAX;
    if ((await storage.schedules.count({ tenant, agent, status: "active" })) < limit) return;
    throw new RotaError("conflict", `${limit} schedules are active, which is the limit: cancel one first`);
  }

  /** False for an invalid phrase: creating the schedule reports that. */
  #isTooOften(phrase: string): boolean {
    const now = this.#options.storageClock.now();
    try {
      const rule = parseSchedule(phrase, { now, tz: localZone() });
      const moments = nextMoments(rule, { after: now, anchor: now, limit: STEPS_LOOKED_AT });
      return moments.some((moment, index) => moment - (moments[index - 1] ?? -Infinity) < STEP_MIN_MS);
    } catch {
      return false;
    }
  }
}

/** The agent made it, for the key that submitted the task. */
function ofAnswer({ taskId, rootTaskId = taskId, depth = 0, agentId, createdBy }: Task): Provenance {
  return {
    createdBy: { keyId: createdBy?.keyId ?? null, agentId, via: "writ" },
    within: { taskId, rootTaskId, depth },
    reach: [agentId],
  };
}

function tooMany(others: number): string {
  const more = others === 0 ? "this one was" : `this one and ${others} more were`;
  return `an answer can have ${ANSWER_WRITS_MAX} writs at most: ${more} not carried out`;
}
