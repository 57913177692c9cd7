import type { Executor } from "../../executors/executor.ts";
import { RotaError } from "../../model/errors.ts";
import type { Log } from "../../model/log.ts";
import type { Task } from "../../model/task.ts";
import { nextMoments } from "../../schedules/moments.ts";
import { parseSchedule } from "../../schedules/schedule-input.ts";
import type { CreateWrit, InvalidWrit, Writ } from "../../schedules/writ.ts";
import { errorBlock } from "../../schedules/writ-answer.ts";
import { localZone } from "../../schedules/zone.ts";
import type { StorageClock } from "../../services/storage-clock.ts";
import type { Storage } from "../../storage/storage.ts";
import { ANSWER_WRITS_MAX, withBlocks, writsInAnswer } from "./answer-writs.ts";
import type { WritClerk } from "./writ-clerk.ts";

/*
 * A model writes these lines, perhaps because somebody else's text told it to, and what it schedules may schedule more:
 * there is a limit to how many, how often, and how many in all.
 */

/** Between two moments of what recurs. */
const STEP_MIN_MS = 60_000;
/** Looked at to find out: in this many, a cron expression has shown its shortest step. */
const STEPS_LOOKED_AT = 100;
/** Active schedules of an agent, from whomever, that let an answer make one more. */
const AGENT_SCHEDULES_MAX = 100;

export interface WritAnswersOptions {
  readonly tenant: string;
  readonly storage: Storage;
  readonly storageClock: StorageClock;
  readonly clerk: WritClerk;
  readonly log: Log;
}

/** Carries out the writs in the answers of agents that may have some, and adds to each answer what became of them. */
export class WritAnswers {
  readonly #options: WritAnswersOptions;

  constructor(options: WritAnswersOptions) {
    this.#options = options;
  }

  /** An executor that does the same, and then what its answer asks for. */
  after(executor: Executor): Executor {
    return async (task, context) => this.#answer(task, await executor(task, context), context.signal);
  }

  /** Never throws: the work is done, whatever becomes of the writs. */
  async #answer(task: Task, result: unknown, signal: AbortSignal): Promise<unknown> {
    try {
      const found = writsInAnswer(result);
      if (found === null) return result;
      const told = withBlocks(found.value, await this.#carryOutAll(found.writs, task, signal));
      if (told !== null) return told;
      this.#options.log.warn({ taskId: task.taskId }, "an answer has no room for what became of its writs");
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
    { taskId, agentId: agent, sessionKey, conversationId }: Task,
    signal: AbortSignal,
  ): Promise<string[]> {
    const { clerk } = this.#options;
    const check = (writ: CreateWrit) => this.#check(writ, agent);
    const blocks: string[] = [];
    let made = 0;
    for (const writ of writs.slice(0, ANSWER_WRITS_MAX)) {
      // Whoever else runs the task by now, or has cancelled it, decides what becomes of it.
      if (signal.aborted) return blocks;
      if (writ.kind === "create") made += 1;
      // A task that is run again, since nobody learned that it had ended, makes what it has made.
      const source = `writ:${taskId}:${made}`;
      const place = { sessionKey: sessionKey ?? null, conversationId: conversationId ?? null };
      blocks.push((await clerk.carryOut(writ, { agent, ...place, source, check })).block);
    }
    const [next, ...others] = writs.slice(ANSWER_WRITS_MAX);
    if (next !== undefined) blocks.push(errorBlock(next, tooMany(others.length)));
    return blocks;
  }

  /** Throws at what is too much for an answer. */
  async #check({ phrase }: CreateWrit, agent: string): Promise<void> {
    if (this.#isTooOften(phrase)) {
      const most = `an answer can ask for every ${STEP_MIN_MS / 1_000} seconds at most`;
      throw new RotaError("invalid_field", `"${phrase}" is too often: ${most}`);
    }
    const { tenant, storage } = this.#options;
    const limit = AGENT_SCHEDULES_MAX;
    const active = await storage.schedules.list({ tenant, agent, status: "active", limit });
    if (active.length < limit) return;
    throw new RotaError("conflict", `${limit} schedules are active, which is the limit: cancel one first`);
  }

  /** What says nothing at all is for others to answer. */
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

function tooMany(others: number): string {
  const more = others === 0 ? "this one was" : `this one and ${others} more were`;
  return `an answer can have ${ANSWER_WRITS_MAX} writs at most: ${more} not carried out`;
}
