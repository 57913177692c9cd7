import { Service, type ServiceOptions } from "../../services/service.ts";
import type { StorageClock } from "../../services/storage-clock.ts";
import type { ScheduleRecord, Storage, StorageSignal } from "../../storage/storage.ts";
import type { RanNow, RunMaker, RunNowParams } from "./run-maker.ts";

/** Schedules that are fired in one transaction: on SQLite, requests wait until it ends. */
const SLICE = 50;
/** How often the clock is looked at: one that jumps, or a machine that slept, is noticed after this at the latest. */
const LOOK_MS = 1_000;
/** Signals can be lost: on a shared storage, what other nodes changed is seen at least this often. */
const POLL_MS = 30_000;
/** How soon to look after a signal: many come in a row while schedules are made. What is made here is known at once. */
const SIGNAL_MS = 20;
/** How soon to look again when something is due and nothing fired: another node was faster, or the clocks differ by a hair. */
const AGAIN_MS = 5;

export interface ScheduleTickerOptions extends ServiceOptions {
  readonly storage: Storage;
  readonly storageClock: StorageClock;
  readonly runs: RunMaker;
}

/** What is asked of it from outside. */
export interface ScheduleRunner {
  /** A schedule is due at this moment of the storage's clock: to be called when one was made or changed here. */
  expect(at: number): void;
  /**
   * Runs a schedule now, whether or not this process fires any by itself. Null: there is no such schedule. Throws `conflict`
   * when it changes so fast that nothing can be made of it, and when its tenant is disabled.
   */
  runNow(params: RunNowParams): Promise<RanNow | null>;
  /**
   * Sees to those moments of a schedule that have come, before it is changed; it is taken as it was read. Answers whether
   * that paused it.
   */
  firePastDue(schedule: ScheduleRecord): Promise<{ readonly paused: boolean }>;
  /** Sets the schedules of a tenant going again that stood still while it was disabled. */
  resumeTenant(tenant: string): Promise<void>;
}

/**
 * Fires schedules at their moments. It knows when the next of them all is due, and until then looks at nothing but the
 * clock.
 */
export class ScheduleTicker extends Service implements ScheduleRunner {
  readonly name = "schedule ticker";
  readonly #options: ScheduleTickerOptions;
  /** When the next schedule is due, by the storage's clock. */
  #dueAt = Number.POSITIVE_INFINITY;
  /** Whether that may no longer be so. */
  #stale = true;
  /** By the monotonic clock. */
  #askedAt = Number.NEGATIVE_INFINITY;
  #closed = false;
  /** The tenant that the last slice ended with: the next slice begins after it, so that none is left out. */
  #lastTenant = "";

  constructor(options: ScheduleTickerOptions) {
    super(options);
    this.#options = options;
  }

  expect(at: number): void {
    this.#dueAt = Math.min(this.#dueAt, at);
    this.wake(Math.max(at - this.#options.storageClock.now(), 0));
  }

  runNow(params: RunNowParams): Promise<RanNow | null> {
    return this.#options.runs.runNow(params);
  }

  firePastDue(schedule: ScheduleRecord): Promise<{ readonly paused: boolean }> {
    return this.#options.runs.firePastDue(schedule);
  }

  async resumeTenant(tenant: string): Promise<void> {
    const nextAt = await this.#options.runs.resumeTenant(tenant);
    if (nextAt !== null) this.expect(nextAt);
  }

  onSignal({ kind }: StorageSignal): void {
    if (kind !== "schedules" && kind !== "reconnected") return;
    this.#stale = true;
    this.wake(SIGNAL_MS);
  }

  /** Fires nothing any more by itself, from this moment on. */
  closeDown(): void {
    this.#closed = true;
  }

  async tick(): Promise<number> {
    if (this.#closed) return LOOK_MS;
    await this.#options.storageClock.sync();
    if (this.#mustAsk()) await this.#ask();
    return this.#isDue() ? this.#fireSlice() : this.#untilNext();
  }

  async #fireSlice(): Promise<number> {
    const { storage, runs } = this.#options;
    const due = await storage.schedules.due({ limit: SLICE, after: this.#lastTenant });
    const fires = await runs.plan(due);
    // It may have been told to stop while it looked.
    if (this.#closed) return LOOK_MS;
    this.#lastTenant = fires.at(-1)?.tenant ?? this.#lastTenant;
    const moved = await runs.write(fires);
    const isMore = fires.length < due.length || due.length === SLICE;
    if (!isMore) await this.#ask();
    if (!isMore && !this.#isDue()) return this.#untilNext();
    return moved > 0 ? 0 : AGAIN_MS;
  }

  #mustAsk(): boolean {
    if (this.#stale) return true;
    if (this.#options.storage.capabilities.exclusive) return false;
    return this.clock.monotonic() - this.#askedAt >= POLL_MS;
  }

  async #ask(): Promise<void> {
    // Whatever is expected or signalled while the storage is asked counts on top of its answer.
    this.#stale = false;
    this.#dueAt = Number.POSITIVE_INFINITY;
    this.#askedAt = this.clock.monotonic();
    try {
      const at = await this.#options.storage.schedules.nextDueAt();
      this.#dueAt = Math.min(this.#dueAt, at ?? Number.POSITIVE_INFINITY);
    } catch (error) {
      this.#stale = true;
      throw error;
    }
  }

  #isDue(): boolean {
    return this.#options.storageClock.now() >= this.#dueAt;
  }

  #untilNext(): number {
    return Math.min(Math.max(this.#dueAt - this.#options.storageClock.now(), 1), LOOK_MS);
  }
}
