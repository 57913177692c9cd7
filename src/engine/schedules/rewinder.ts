import { nextMoment } from "../../schedules/moments.ts";
import { rewound } from "../../schedules/rewound.ts";
import { Service, type ServiceOptions } from "../../services/service.ts";
import { isStorageAway } from "../../services/storage-away.ts";
import type { StorageClock } from "../../services/storage-clock.ts";
import type { DueRow, RewindParams, ScheduleName, ScheduleRecord, Storage } from "../../storage/storage.ts";

/** How often the clock is read. */
const LOOK_MS = 1_000;
/** A smaller step back comes from a new measurement of the storage's clock, not from a change of the clock. */
const BACK_MS = 200;
/** Schedules per page, and rows of one schedule per page. */
const PAGE = 200;
const ROWS_PAGE = 1_000;
/** Rows that one transaction takes back, so that other writes do not wait for long. */
const ROWS_MAX = 500;
/** Tries in one tick for a schedule that others change meanwhile. After that, the next tick tries again. */
const TRIES_MAX = 5;

export interface RewinderOptions extends ServiceOptions {
  readonly storage: Storage;
  readonly storageClock: StorageClock;
}

/**
 * Notices that the storage's clock was set back. Due times of schedules that are in the future again, and have not started a
 * run, become due again. A clock that was set back while no process ran is noticed at the start.
 */
export class Rewinder extends Service<RewinderOptions> {
  readonly name = "rewinder";
  /** The latest time that the storage's clock has shown since it was last set back. */
  #latest = Number.POSITIVE_INFINITY;
  /** When the clock was last read, by the monotonic clock. */
  #lookedAt = Number.POSITIVE_INFINITY;
  #left: Left | null = null;
  /** Schedules that others changed during each try, by id. */
  readonly #contested = new Map<number, Contested>();

  async tick(): Promise<number> {
    const { storage, storageClock } = this.options;
    await storageClock.sync();
    const now = storageClock.now();
    const monotonic = this.clock.monotonic();
    if (now < this.#latest - BACK_MS) {
      const tenants = (await storage.tenants.list()).map(({ id }) => id);
      // The clock was set after the last read. The time since then is subtracted, so that due times that came meanwhile
      // count as future ones.
      this.#left = { tenants, after: 0, corrected: now - Math.max(monotonic - this.#lookedAt, 0) };
      this.#latest = now;
    }
    this.#latest = Math.max(this.#latest, now);
    this.#lookedAt = monotonic;
    if (this.#left === null) await this.#retryContested();
    await this.#lookAtPage();
    return this.#left === null ? LOOK_MS : 0;
  }

  async #lookAtPage(): Promise<void> {
    const { storage, storageClock } = this.options;
    const [tenant, ...others] = this.#left?.tenants ?? [];
    if (this.#left === null || tenant === undefined) {
      this.#left = null;
      return;
    }
    const { after, corrected } = this.#left;
    const page = await storage.schedules.page({ tenant, after, limit: PAGE });
    for (const schedule of page)
      if (isAhead(schedule, storageClock.now())) await this.#rewind(schedule, schedule, corrected);
    const last = page.at(-1);
    this.#left =
      last === undefined
        ? { tenants: others, after: 0, corrected }
        : { tenants: [tenant, ...others], after: last.id, corrected };
  }

  async #retryContested(): Promise<void> {
    for (const { name, corrected } of [...this.#contested.values()]) {
      await this.#rewind(name, await this.options.storage.schedules.get(name), corrected);
    }
  }

  async #rewind(name: ScheduleName, read: ScheduleRecord | null, corrected: number): Promise<void> {
    const { tenant, id } = name;
    let schedule = read;
    try {
      for (let tries = 1; schedule !== null && tries <= TRIES_MAX; tries += 1) {
        const isWritten = await this.#write(schedule, await this.#plan(schedule, corrected));
        schedule = isWritten ? null : await this.options.storage.schedules.get(name);
      }
      if (schedule === null) this.#contested.delete(id);
      else this.#contend(name, corrected);
    } catch (error) {
      if (isStorageAway(error)) throw error;
      // The other schedules are still processed.
      this.#contested.delete(id);
      this.log.error(
        { tenant, schedule: id, error },
        "could not make due times of a schedule due again after the clock was set back",
      );
    }
  }

  #contend({ tenant, id }: ScheduleName, corrected: number): void {
    if (!this.#contested.has(id)) {
      this.log.warn(
        { tenant, schedule: id },
        "a schedule is changed too often to make its due times due again after the clock was set back; trying again",
      );
    }
    this.#contested.set(id, { name: { tenant, id }, corrected });
  }

  /** The changes to write; null: none. */
  async #plan(schedule: ScheduleRecord, corrected: number): Promise<RewindParams | null> {
    const { tenant, id, revision, rule, anchorAt: anchor } = schedule;
    const now = this.options.storageClock.now();
    const rows: RewindParams["rows"][number][] = [];
    const missed: RewindParams["missed"][number][] = [];
    let free = nextMoment(rule, { after: corrected, anchor });
    for await (const row of this.#rowsAfter(schedule, corrected)) {
      const { runId, firstDueAt, dueAt, started } = row;
      const isPast = dueAt <= now;
      const isTaken = isPast
        ? free !== null && firstDueAt <= free && free <= dueAt
        : started && dueAt === free;
      if (isTaken) free = nextMoment(rule, { after: dueAt, anchor });
      if (isPast) continue;
      const left = rewound(row, schedule, corrected);
      const kept = left.row ?? { firstDueAt, dueAt, moments: 0 };
      if (kept.moments !== row.moments) rows.push({ runId, ...kept });
      if (left.rest !== null) missed.push({ ...left.rest, reason: reasonFor(runId) });
    }
    if (rule.kind === "once") {
      const again = rows.findLast(({ moments, dueAt }) => moments === 0 && dueAt >= rule.atMs);
      const reopens = again !== undefined && schedule.status !== "paused" && schedule.nextFireAt === null;
      const nextFireAt = reopens ? again.dueAt : schedule.nextFireAt;
      return rows.length === 0 ? null : { tenant, id, revision, rows, missed, nextFireAt, reopens };
    }
    const isEarlier = free !== null && (schedule.nextFireAt === null || free < schedule.nextFireAt);
    const nextFireAt = schedule.status === "active" && isEarlier ? free : schedule.nextFireAt;
    if (rows.length === 0 && nextFireAt === schedule.nextFireAt) return null;
    return { tenant, id, revision, rows, missed, nextFireAt, reopens: false };
  }

  /**
   * Returns false if the schedule was changed meanwhile. The last rows are written together with the next due time: until then
   * `isAhead` still finds the schedule.
   */
  async #write({ nextFireAt }: ScheduleRecord, plan: RewindParams | null): Promise<boolean> {
    if (plan === null) return true;
    const { storage } = this.options;
    let { rows, revision } = plan;
    while (rows.length > ROWS_MAX) {
      const part = {
        ...plan,
        revision,
        rows: rows.slice(0, ROWS_MAX),
        missed: [],
        nextFireAt,
        reopens: false,
      };
      if (!(await storage.schedules.rewind(part))) return false;
      rows = rows.slice(ROWS_MAX);
      revision += 1;
    }
    return storage.schedules.rewind({ ...plan, revision, rows });
  }

  async *#rowsAfter({ tenant, id, lastDueAt }: ScheduleRecord, first: number): AsyncGenerator<DueRow> {
    for (let after = first; after < (lastDueAt ?? first); ) {
      const page = await this.options.storage.schedules.dueRows({ tenant, id, after, limit: ROWS_PAGE });
      yield* page;
      if (page.length < ROWS_PAGE) return;
      after = page.at(-1)?.dueAt ?? Number.POSITIVE_INFINITY;
    }
  }
}

/** The schedules that are not checked yet. */
interface Left {
  readonly tenants: readonly string[];
  /** The last schedule that was checked, of the first tenant. */
  readonly after: number;
  /** The time that the clock was set to, or slightly earlier. Due times up to it are past; later ones become due again. */
  readonly corrected: number;
}

interface Contested {
  readonly name: ScheduleName;
  /** As in `Left`. */
  readonly corrected: number;
}

function reasonFor(runId: number): string {
  return `covered by run ${runId}, which was due later: the clock was set back`;
}

/** Whether the schedule has a due time or a change in the future: then the clock was set back since. */
function isAhead({ lastDueAt, updatedAt }: ScheduleRecord, now: number): boolean {
  return (lastDueAt ?? 0) > now || updatedAt > now;
}
