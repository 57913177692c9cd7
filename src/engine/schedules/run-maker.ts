import type { RunMetrics } from "../../metrics/run-metrics.ts";
import { RotaError } from "../../model/errors.ts";
import type { Log } from "../../model/log.ts";
import { TOO_MANY_WAITING } from "../../model/schedule.ts";
import { runsLeft } from "../../schedules/limits.ts";
import type { TakenTimes } from "../../schedules/open-spans.ts";
import { heldUntil } from "../../schedules/stand-still.ts";
import { isStorageAway } from "../../services/storage-away.ts";
import type { StorageClock } from "../../services/storage-clock.ts";
import type {
  EndedTask,
  Fire,
  FiredSchedule,
  InsertedTask,
  NewTask,
  ScheduleName,
  ScheduleRecord,
  Storage,
} from "../../storage/storage.ts";
import { errorText } from "../work/attempt-error.ts";
import { type RunDefaults, toRunTask } from "../work/run-task.ts";
import {
  type FireParts,
  fireBroken,
  fireDisabled,
  fireDue,
  fireEnabled,
  fireForced,
  isDue,
} from "./build-firing.ts";

/** Rows that one transaction writes, unless one schedule alone has more: others want their turn, too. */
const ROWS_MAX = 100;
/** How long moments are worked out in one turn: after a long time away there may be many to count. */
const PLANNING_MS = 20;
/** Due times that one plan looks at which have run already. */
const TAKEN_MAX = 1_000;
/** Schedules that are read at once when a tenant is enabled. */
const PAGE = 200;
/** How often a run that was asked for is tried while its schedule changes under it. */
const TRIES_MAX = 20;

export interface RunMakerOptions extends RunOptions {
  readonly storage: Storage;
  readonly storageClock: StorageClock;
  readonly metrics: RunMetrics;
  /** The monotonic clock. */
  readonly monotonic: () => number;
  readonly log: Log;
  /** Told of the tasks that were made. */
  readonly onInserted: (tasks: readonly NewTask[], answers: readonly InsertedTask[]) => void;
  /** Told of the tasks that had to give way. */
  readonly onCancelled: (tasks: readonly TenantTask[]) => void;
}

/** A task that was cancelled, and whose it was. */
export type TenantTask = EndedTask & { readonly tenant: string };

/** What the runs of schedules are made of. */
export interface RunOptions {
  readonly newTaskId: () => string;
  readonly newRequestId: () => string;
  readonly defaults: () => RunDefaults;
  /** Whether an agent is known, after a look at the storage where another node may have made it. */
  readonly hasAgent: (name: AgentName) => boolean | Promise<boolean>;
  /** Whether a tenant is disabled, after a look at the storage: another node may have done it. */
  readonly isDisabled: (tenant: string) => Promise<boolean>;
  /** Whether a tenant stores so much that it may store nothing more. */
  readonly isFull: (tenant: string) => Promise<boolean>;
}

export interface AgentName {
  readonly tenant: string;
  readonly agent: string;
}

export interface RunNowParams extends ScheduleName {
  /** `force`: out of turn; `due`: only what has come of its moments. */
  readonly mode: "force" | "due";
}

/** What came of it. A run whose agent is missing counts as one, since it left its row. */
export type RanNow =
  | { readonly ran: true; readonly runId: number }
  | { readonly ran: false; readonly reason: "not-due" | "already-running" | "too_many_waiting" };

/**
 * Makes runs of schedules. What becomes of moments is worked out from a schedule as it was read, and written only if that
 * is what it still is: of several nodes one succeeds, and a fire whose answer got lost is not made twice.
 */
export class RunMaker {
  readonly #options: RunMakerOptions;

  constructor(options: RunMakerOptions) {
    this.#options = options;
  }

  /** What becomes of schedules that are due: of as many as fit into one turn, and of one at least. */
  async plan(due: readonly ScheduleRecord[]): Promise<Fire[]> {
    const { monotonic } = this.#options;
    const [orphans, disabled, full, taken] = await Promise.all([
      this.#orphans(due),
      this.#tenantsThat(this.#options.isDisabled, due),
      this.#tenantsThat(this.#options.isFull, due),
      Promise.all(due.map((schedule) => this.#taken(schedule))),
    ]);
    const began = monotonic();
    const fires: Fire[] = [];
    let rows = 0;
    for (const [index, schedule] of due.entries()) {
      const fire = this.#fireDue(schedule, {
        isOrphan: orphans.has(agentKey(schedule)),
        isDisabled: disabled.has(schedule.tenant),
        isFull: full.has(schedule.tenant),
        taken: taken[index],
      });
      rows += fire.runs.length;
      if (rows > ROWS_MAX && fires.length > 0) break;
      fires.push(fire);
      if (monotonic() - began > PLANNING_MS) break;
    }
    return fires;
  }

  /**
   * Writes it down, and answers how many schedules that moved on. What cannot be written must not keep others from it: each
   * is then written by itself, and that one is paused.
   */
  async write(fires: readonly Fire[]): Promise<number> {
    const [first] = fires;
    if (first === undefined) return 0;
    try {
      return (await this.#write(fires)).filter(({ fired }) => fired).length;
    } catch (error) {
      if (isStorageAway(error)) throw error;
      if (fires.length === 1) return this.#pauseUnstorable(first, error);
      let moved = 0;
      for (const fire of fires) moved += await this.write([fire]);
      return moved;
    }
  }

  /**
   * Sees to those moments of a schedule that have come, as it was read; if it is another by now, nothing happens. Answers
   * whether that paused it, since it cannot be fired as it is.
   */
  async firePastDue(schedule: ScheduleRecord): Promise<{ readonly paused: boolean }> {
    if (schedule.nextFireAt === null) return { paused: false };
    const fires = await this.plan([schedule]);
    const moved = await this.write(fires);
    return { paused: moved > 0 && fires.some((fire) => fire.pauses !== null && fire.whileDisabled !== true) };
  }

  /** Null: there is no such schedule. Throws `conflict` when it changes too fast, or its tenant is disabled. */
  async runNow({ tenant, id, mode }: RunNowParams): Promise<RanNow | null> {
    const { storage, storageClock } = this.#options;
    await storageClock.sync();
    for (let tries = 1; tries <= TRIES_MAX; tries++) {
      const schedule = await storage.schedules.get({ tenant, id });
      if (schedule === null) return null;
      if (await this.#options.isDisabled(tenant)) {
        throw new RotaError("conflict", "the tenant is disabled: nothing of it fires until it is enabled");
      }
      const isOrphan = (await this.#orphans([schedule])).size > 0;
      if (mode === "due" && !isDue(schedule, storageClock.now())) return { ran: false, reason: "not-due" };
      if (mode === "force" && runsLeft(schedule) === 0) throw spent(schedule);
      const fire =
        mode === "due"
          ? this.#fireDue(schedule, {
              isOrphan,
              isDisabled: false,
              isFull: false,
              taken: await this.#taken(schedule),
            })
          : fireForced(schedule, this.#parts(isOrphan));
      if (fire === null) return { ran: false, reason: "already-running" };
      const [answer] = await this.#write([fire]);
      if (answer?.fired === true) return ranNow(fire, answer);
    }
    throw new RotaError("conflict", `schedule ${id} changes all the time: try again`);
  }

  /**
   * Sets the schedules of a tenant going again that stood still while it was disabled. Answers when the next of them is due;
   * null: none is.
   */
  async resumeTenant(tenant: string): Promise<number | null> {
    const { storage, storageClock } = this.#options;
    await storageClock.sync();
    let nextAt = Number.POSITIVE_INFINITY;
    for (let after = 0; ; ) {
      const page = await storage.schedules.page({ tenant, after, limit: PAGE });
      for (const schedule of page) {
        nextAt = Math.min(nextAt, (await this.#resume(schedule)) ?? Number.POSITIVE_INFINITY);
      }
      const last = page.at(-1);
      if (last === undefined || page.length < PAGE) break;
      after = last.id;
    }
    return nextAt === Number.POSITIVE_INFINITY ? null : nextAt;
  }

  /** When it is due next; null: never. */
  async #resume({ tenant, id }: ScheduleName): Promise<number | null> {
    const { storage, storageClock } = this.#options;
    for (let tries = 1; tries <= TRIES_MAX; tries++) {
      const schedule = await storage.schedules.get({ tenant, id });
      if (schedule === null) return null;
      const now = storageClock.now();
      if (schedule.held) {
        const changes = changesOfHeld(schedule, now);
        const { revision } = schedule;
        if (await storage.schedules.update({ tenant, id, revision, changes })) return changes.nextFireAt;
        continue;
      }
      const fire = fireEnabled(schedule, now);
      if (fire === null) return schedule.nextFireAt;
      const [answer] = await this.#write([fire]);
      if (answer?.fired === true) return fire.nextFireAt;
    }
    throw new RotaError("conflict", `schedule ${id} changes all the time: try again`);
  }

  #fireDue(
    schedule: ScheduleRecord,
    {
      isOrphan,
      isDisabled,
      isFull,
      taken,
    }: { isOrphan: boolean; isDisabled: boolean; isFull: boolean; taken: TakenTimes | undefined },
  ): Fire {
    const parts = { ...this.#parts(isOrphan), isFull };
    // The storage says that it is due, and its clock is the one that counts.
    const due = {
      ...schedule,
      nextFireAt: schedule.nextFireAt ?? parts.now,
      ...(taken === undefined ? {} : { taken }),
    };
    try {
      const now = Math.max(parts.now, due.nextFireAt);
      return isDisabled ? fireDisabled(due, now) : fireDue(due, { ...parts, now });
    } catch (error) {
      const { tenant, id } = schedule;
      this.#options.log.error({ tenant, schedule: id, error }, "a schedule cannot be fired and is paused");
      return fireBroken(due, error, parts);
    }
  }

  /** The due times that lie behind the next one and have run already: only a clock that was set back leaves any. */
  async #taken({ tenant, id, nextFireAt, lastDueAt }: ScheduleRecord): Promise<TakenTimes | undefined> {
    if (nextFireAt === null || lastDueAt === null || lastDueAt < nextFireAt) return undefined;
    const { schedules } = this.#options.storage;
    const rows = await schedules.dueRows({ tenant, id, after: nextFireAt - 1, limit: TAKEN_MAX });
    return { dueAts: rows.map(({ dueAt }) => dueAt), isComplete: rows.length < TAKEN_MAX };
  }

  #parts(isOrphan: boolean): FireParts {
    const { storageClock, newTaskId, newRequestId, defaults } = this.#options;
    return {
      now: storageClock.now(),
      isOrphan,
      newTask: (schedule, params) =>
        toRunTask(schedule, { id: newTaskId(), ...params, defaults: defaults() }),
      newRequestId,
    };
  }

  /** Those agents of schedules that nobody knows. */
  async #orphans(schedules: readonly ScheduleRecord[]): Promise<ReadonlySet<string>> {
    const agents = new Map(schedules.map((schedule) => [agentKey(schedule), schedule]));
    const found = await Promise.all(
      [...agents].map(async ([key, { tenant, agent }]) =>
        (await this.#options.hasAgent({ tenant, agent })) ? [] : [key],
      ),
    );
    return new Set(found.flat());
  }

  async #tenantsThat(
    are: (tenant: string) => Promise<boolean>,
    schedules: readonly ScheduleRecord[],
  ): Promise<ReadonlySet<string>> {
    const tenants = [...new Set(schedules.map(({ tenant }) => tenant))];
    const found = await Promise.all(tenants.map(async (tenant) => ((await are(tenant)) ? [tenant] : [])));
    return new Set(found.flat());
  }

  async #write(fires: readonly Fire[]): Promise<FiredSchedule[]> {
    const answers = await this.#options.storage.schedules.fire({ fires });
    const byName = new Map(fires.map((fire) => [scheduleKey(fire), fire]));
    const tasks: NewTask[] = [];
    const inserted: InsertedTask[] = [];
    for (const answer of answers) {
      const fire = byName.get(scheduleKey(answer));
      if (fire === undefined || !answer.fired) continue;
      const made = new Map(answer.runs.map(({ task }) => [task?.id, task]));
      this.#count(fire, made);
      for (const run of fire.runs) {
        const task = run.status === "running" ? made.get(run.task.id) : undefined;
        if (run.status !== "running" || !task) continue;
        tasks.push(run.task);
        inserted.push(task);
        const { tenant, id: schedule } = answer;
        const { requestId } = run;
        this.#options.log.info({ tenant, schedule, taskId: task.id, requestId }, "a schedule has fired");
      }
    }
    const { onInserted, onCancelled } = this.#options;
    if (tasks.length > 0) onInserted(tasks, inserted);
    onCancelled(answers.flatMap(({ tenant, cancelled }) => cancelled.map((task) => ({ ...task, tenant }))));
    return answers;
  }

  /** `made`: the tasks, by id. A run that was to fire and has none was skipped. */
  #count({ runs }: Fire, made: ReadonlyMap<string | undefined, unknown>): void {
    const { metrics, storageClock } = this.#options;
    for (const run of runs) {
      const { status, forced, dueAt } = run;
      const fires = run.status === "running" && made.has(run.task.id);
      if (fires && !forced) metrics.lagged(storageClock.now() - dueAt);
      if (fires) metrics.wrote("fired");
      else if (status !== "running") metrics.wrote(status);
      else if (!forced) metrics.wrote("skipped");
    }
  }

  async #pauseUnstorable({ tenant, id, revision }: Fire, error: unknown): Promise<number> {
    const { storage, log } = this.#options;
    log.error({ tenant, schedule: id, error }, "the runs of a schedule cannot be stored, and it is paused");
    const paused = await storage.schedules.update({
      tenant,
      id,
      revision,
      changes: { status: "paused", nextFireAt: null },
      pauseReason: `its runs could not be stored: ${errorText(error)}`,
    });
    return paused === null ? 0 : 1;
  }
}

/** It goes on, unless it was given a rule meanwhile that has come to its end. */
function changesOfHeld(schedule: ScheduleRecord, now: number) {
  const nextFireAt = heldUntil(schedule, now);
  const isOver = schedule.rule.kind !== "once" && (nextFireAt === null || runsLeft(schedule) === 0);
  return isOver
    ? ({ status: "completed", nextFireAt: null } as const)
    : ({ status: "active", nextFireAt } as const);
}

function spent({ id, maxRuns }: ScheduleRecord): RotaError {
  return new RotaError(
    "conflict",
    `schedule ${id} has reached \`max_runs\` (${maxRuns}): raise it, or set it to null for no limit`,
  );
}

/** Of several runs the last one that went off; of none, what stood in the way. */
function ranNow({ runs }: Fire, answer: FiredSchedule): RanNow {
  // One that could not even start has no task, and nothing comes after it.
  const last =
    runs.at(-1)?.status === "failed" ? answer.runs.at(-1) : answer.runs.findLast(({ task }) => task);
  if (last !== undefined) return { ran: true, runId: last.id };
  // What has a row already is not written: then it did not fire for another reason.
  const isWhole = answer.runs.length === runs.length || runs.every(({ forced }) => forced);
  if (isWhole && runs.some(({ status }) => status === "running"))
    return { ran: false, reason: TOO_MANY_WAITING };
  const isSkipped = runs.some(({ status }) => status === "skipped");
  return { ran: false, reason: isSkipped ? "already-running" : "not-due" };
}

function agentKey({ tenant, agent }: AgentName): string {
  return JSON.stringify([tenant, agent]);
}

function scheduleKey({ tenant, id }: ScheduleName): string {
  return `${id} ${tenant}`;
}
