import { errorText } from "../../attempts/attempt-error.ts";
import type { RunMetrics } from "../../metrics/run-metrics.ts";
import { type AgentName, agentKey } from "../../model/agent.ts";
import { RotaError } from "../../model/errors.ts";
import type { Log } from "../../model/log.ts";
import { TOO_MANY_WAITING } from "../../model/run.ts";
import { runsLeft } from "../../schedules/limits.ts";
import type { TakenTimes } from "../../schedules/open-spans.ts";
import { heldUntil } from "../../schedules/stand-still.ts";
import { isStorageAway } from "../../services/storage-away.ts";
import type { StorageClock } from "../../services/storage-clock.ts";
import { largeBytesOf } from "../../storage/lazy-json.ts";
import type {
  EndedTask,
  Fire,
  FiredSchedule,
  InsertedTask,
  NewTask,
  ScheduleName,
  ScheduleRecord,
  Storage,
  SubmitBounds,
} from "../../storage/storage.ts";
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

/** Rows that one transaction writes, so that other writes do not wait for long. One schedule alone may have more. */
const ROWS_MAX = 100;
/** The same in bytes of large schedules, whose tasks take long to write. */
const BYTES_MAX = 131_072;
/** How long one turn computes due times: after a long downtime there may be many to count. */
const PLANNING_MS = 20;
/** Due times with a run that one plan reads. */
const TAKEN_MAX = 1_000;
/** Schedules per page when a tenant is enabled. */
const PAGE = 200;
/**
 * Tries for a schedule that others change meanwhile. A busy node can lose to faster ones many times in a row: 20 tries were not enough
 * for three nodes that ran one schedule 38 times each.
 */
const TRIES_MAX = 100;

export interface RunMakerOptions extends RunOptions {
  readonly storage: Storage;
  readonly storageClock: StorageClock;
  readonly metrics: RunMetrics;
  /** The monotonic clock. */
  readonly monotonic: () => number;
  readonly log: Log;
  /** Called with the tasks that were inserted. */
  readonly onInserted: (tasks: readonly NewTask[], answers: readonly InsertedTask[]) => void;
  /** Called with the tasks that were cancelled because a newer run replaces them. */
  readonly onCancelled: (tasks: readonly TenantTask[]) => void;
}

/** A cancelled task with its tenant. */
export type TenantTask = EndedTask & { readonly tenant: string };

/** Ids, defaults and checks for new runs. */
export interface RunOptions {
  readonly newTaskId: () => string;
  readonly newRequestId: () => string;
  readonly defaults: () => RunDefaults;
  /** Whether an agent is known. Reads the storage if another node may have created it. */
  readonly hasAgent: (name: AgentName) => boolean | Promise<boolean>;
  /** Whether a tenant is disabled. Reads the storage, since another node may have disabled it. */
  readonly isDisabled: (tenant: string) => Promise<boolean>;
  /** Whether a tenant has used up its storage quota. */
  readonly isFull: (tenant: string) => Promise<boolean>;
}

export interface RunNowParams extends ScheduleName {
  /** `force`: one run now, whether it is due or not; `due`: only if a due time has come. */
  readonly mode: "force" | "due";
  /** Those of the caller; left out: the run is not counted. */
  readonly bounds?: SubmitBounds;
}

/** The result of `runNow`. A run that failed because its agent is missing counts as a run, since it has a row. */
export type RanNow =
  | { readonly ran: true; readonly runId: number }
  | { readonly ran: false; readonly reason: "not-due" | "already-running" | "too_many_waiting" };

/**
 * Creates runs of schedules. A plan is computed from the schedule as it was read, and is written only if its revision is
 * still the same. So one of several nodes succeeds, and a retry after a lost response does not fire twice.
 */
export class RunMaker {
  readonly #options: RunMakerOptions;

  constructor(options: RunMakerOptions) {
    this.#options = options;
  }

  /** Plans the runs of due schedules: as many schedules as fit into one turn, and at least one. */
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
    let [rows, bytes] = [0, 0];
    for (const [index, schedule] of due.entries()) {
      const fire = this.#fireDue(schedule, {
        isOrphan: orphans.has(agentKey(schedule)),
        isDisabled: disabled.has(schedule.tenant),
        isFull: full.has(schedule.tenant),
        taken: taken[index],
      });
      rows += fire.runs.length;
      bytes += fire.runs.length * largeBytesOf(schedule);
      if ((rows > ROWS_MAX || bytes > BYTES_MAX) && fires.length > 0) break;
      fires.push(fire);
      if (monotonic() - began > PLANNING_MS) break;
    }
    return fires;
  }

  /**
   * Writes the fires and returns how many schedules advanced. If the write fails, each fire is written on its own, and a
   * schedule whose fire cannot be stored is paused: it must not block the others.
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
   * Fires the due times of a schedule that have come. Does nothing if the schedule was changed since it was read. Returns
   * whether it is paused now because it cannot be fired.
   */
  async firePastDue(schedule: ScheduleRecord): Promise<{ readonly paused: boolean }> {
    if (schedule.nextFireAt === null) return { paused: false };
    const fires = await this.plan([schedule]);
    const moved = await this.write(fires);
    return { paused: moved > 0 && fires.some((fire) => fire.pauses !== null && fire.whileDisabled !== true) };
  }

  /** Returns null if there is no such schedule. Throws `conflict` if it keeps changing, or if its tenant is disabled. */
  async runNow({ tenant, id, mode, bounds }: RunNowParams): Promise<RanNow | null> {
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
      const [answer] = await this.#write([fire], bounds);
      if (answer?.fired === true) return ranNow(fire, answer);
    }
    throw new RotaError("conflict", `schedule ${id} changes all the time: try again`);
  }

  /**
   * Resumes the schedules of a tenant that were deferred or held while it was disabled. Returns when the next schedule of the
   * tenant is due; null: none is.
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
      if (last === undefined) break;
      after = last.id;
    }
    return nextAt === Number.POSITIVE_INFINITY ? null : nextAt;
  }

  /** Returns when the schedule is due next; null: never. */
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
    // The storage returned it as due, and the storage's clock is authoritative.
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

  /** The due times from the next one on that have a run already. There are some only after the clock was set back. */
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

  /** The agents of these schedules that do not exist. */
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

  async #write(fires: readonly Fire[], bounds?: SubmitBounds): Promise<FiredSchedule[]> {
    const answers = await this.#options.storage.schedules.fire({ fires, ...(bounds && { bounds }) });
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

  /** `made`: the inserted tasks, by id. A planned run without a task was skipped. */
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

/** The schedule becomes active, unless its rule was changed meanwhile to one that has ended. */
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

/** The last run that was created, or the reason why there is none. */
function ranNow({ runs }: Fire, answer: FiredSchedule): RanNow {
  // A run whose agent is missing has no task, and is the last one.
  const last =
    runs.at(-1)?.status === "failed" ? answer.runs.at(-1) : answer.runs.findLast(({ task }) => task);
  if (last !== undefined) return { ran: true, runId: last.id };
  // A due time that has a row already is not written again: fewer rows than planned do not mean too many waiting runs.
  const isWhole = answer.runs.length === runs.length || runs.every(({ forced }) => forced);
  if (isWhole && runs.some(({ status }) => status === "running"))
    return { ran: false, reason: TOO_MANY_WAITING };
  const isSkipped = runs.some(({ status }) => status === "skipped");
  return { ran: false, reason: isSkipped ? "already-running" : "not-due" };
}

function scheduleKey({ tenant, id }: ScheduleName): string {
  return `${id} ${tenant}`;
}
