import { Service, type ServiceOptions } from "../../services/service.ts";
import type { StorageClock } from "../../services/storage-clock.ts";
import type { ScheduleRecord, Storage } from "../../storage/storage.ts";
import type { FirePace } from "./fire-pace.ts";
import type { RanNow, RunMaker, RunNowParams } from "./run-maker.ts";

/** Schedules fired in one transaction: on SQLite, requests wait until it ends. */
const SLICE = 50;
/** How often the clock is read: a clock that jumps, or a machine that slept, is noticed after this time at the latest. */
const LOOK_MS = 1_000;
/** Signals can be lost: on a shared storage, changes by other nodes are read at least this often. */
const POLL_MS = 30_000;
/** The delay after a signal: many arrive in a row while schedules are created. Changes by this process need no signal. */
const SIGNAL_MS = 20;
/** The delay when a schedule is due but nothing fired: another node was faster, or the clocks differ slightly. */
const AGAIN_MS = 5;
/** The delay while all due schedules belong to tenants over `maxFiresPerSec`. Schedules of other tenants fire this late at most. */
const PACED_MS = 20;
/** How often the log may warn that schedules fire late for that reason. */
const WARN_EVERY_MS = 60_000;

export interface ScheduleTickerOptions extends ServiceOptions {
  readonly storage: Storage;
  readonly storageClock: StorageClock;
  readonly runs: RunMaker;
  readonly pace: FirePace;
}

/** The part of the schedule ticker that other modules call. */
export interface ScheduleRunner {
  /** The caller created or changed a schedule that is due at this time of the storage's clock. */
  expect(at: number): void;
  /**
   * Runs a schedule now, even if this process fires no schedules by itself. Returns null if there is no such schedule. Throws
   * `conflict` if it keeps changing, or if its tenant is disabled.
   */
  runNow(params: RunNowParams): Promise<RanNow | null>;
  /**
   * Fires the due times of a schedule that have come, before the caller changes it. Does nothing if it was changed since it was
   * read. Returns whether it is paused now because it cannot be fired.
   */
  firePastDue(schedule: ScheduleRecord): Promise<{ readonly paused: boolean }>;
  /** Resumes the schedules of a tenant that were deferred or held while it was disabled. */
  resumeTenant(tenant: string): Promise<void>;
}

/**
 * Fires schedules at their due times. It remembers the next due time of all schedules, and until then reads only the clock.
 */
export class ScheduleTicker extends Service<ScheduleTickerOptions> implements ScheduleRunner {
  readonly name = "schedule ticker";
  /** When the next schedule is due, by the storage's clock. */
  #dueAt = Number.POSITIVE_INFINITY;
  /** Whether `#dueAt` may be outdated. */
  #stale = true;
  /** When the storage was last asked for the next due time, by the monotonic clock. */
  #askedAt = Number.NEGATIVE_INFINITY;
  #closed = false;
  /** The tenant that the last slice ended with. The next slice begins after it, so that all tenants get their turn. */
  #lastTenant = "";
  #warnedAt = Number.NEGATIVE_INFINITY;

  expect(at: number): void {
    this.#dueAt = Math.min(this.#dueAt, at);
    this.wake(Math.max(at - this.options.storageClock.now(), 0));
  }

  runNow(params: RunNowParams): Promise<RanNow | null> {
    return this.options.runs.runNow(params);
  }

  firePastDue(schedule: ScheduleRecord): Promise<{ readonly paused: boolean }> {
    return this.options.runs.firePastDue(schedule);
  }

  async resumeTenant(tenant: string): Promise<void> {
    const nextAt = await this.options.runs.resumeTenant(tenant);
    if (nextAt !== null) this.expect(nextAt);
  }

  /** The next due time of a schedule may be earlier now. */
  schedulesChanged(): void {
    this.#stale = true;
    this.wake(SIGNAL_MS);
  }

  /** From now on fires no schedule by itself. `runNow` still works. */
  closeDown(): void {
    this.#closed = true;
  }

  async tick(): Promise<number> {
    if (this.#closed) return LOOK_MS;
    await this.options.storageClock.sync();
    if (this.#mustAsk()) await this.#ask();
    return this.#isDue() ? this.#fireSlice() : this.#untilNext();
  }

  async #fireSlice(): Promise<number> {
    const { storage, runs, pace } = this.options;
    const due = await storage.schedules.due({ limit: SLICE, after: this.#lastTenant });
    const allowed = pace.allowed(due);
    if (allowed.length < due.length) this.#warnOfPace(due, allowed);
    const fires = await runs.plan(allowed);
    // `closeDown` may have been called while the storage was read.
    if (this.#closed) return LOOK_MS;
    pace.used(allowed.slice(0, fires.length));
    const last = fires.length < allowed.length ? fires.at(-1) : due.at(-1);
    this.#lastTenant = last?.tenant ?? this.#lastTenant;
    const moved = await runs.write(fires);
    const isMore = fires.length < due.length || due.length === SLICE;
    if (!isMore) await this.#ask();
    if (!isMore && !this.#isDue()) return this.#untilNext();
    if (allowed.length === 0 && due.length > 0) return PACED_MS;
    return moved > 0 ? 0 : AGAIN_MS;
  }

  #warnOfPace(due: readonly ScheduleRecord[], allowed: readonly ScheduleRecord[]): void {
    const now = this.clock.monotonic();
    if (now - this.#warnedAt < WARN_EVERY_MS) return;
    this.#warnedAt = now;
    const tenant = due.find((schedule) => !allowed.includes(schedule))?.tenant;
    this.log.warn(
      { tenant },
      "schedules of a tenant fire late: more are due per second than `tenants.maxFiresPerSec` allows; raise it, or spread their due times",
    );
  }

  #mustAsk(): boolean {
    if (this.#stale) return true;
    if (this.options.storage.capabilities.exclusive) return false;
    return this.clock.monotonic() - this.#askedAt >= POLL_MS;
  }

  async #ask(): Promise<void> {
    // Reset before the query, so that calls of `expect` and signals during it are not lost.
    this.#stale = false;
    this.#dueAt = Number.POSITIVE_INFINITY;
    this.#askedAt = this.clock.monotonic();
    try {
      const at = await this.options.storage.schedules.nextDueAt();
      this.#dueAt = Math.min(this.#dueAt, at ?? Number.POSITIVE_INFINITY);
    } catch (error) {
      this.#stale = true;
      throw error;
    }
  }

  #isDue(): boolean {
    return this.options.storageClock.now() >= this.#dueAt;
  }

  #untilNext(): number {
    return this.options.storageClock.sleepMs(this.#dueAt, LOOK_MS);
  }
}
