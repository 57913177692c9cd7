import { Service, type ServiceOptions } from "../../services/service.ts";
import type { StorageClock } from "../../services/storage-clock.ts";
import type { Storage } from "../../storage/storage.ts";
import type { MetricsByTenant } from "../work/metrics-by-tenant.ts";

/** Tasks moved in one transaction, so that a storm of due ones holds up nobody for long. */
const SLICE = 500;
/** How soon to look after a task came that no live node can execute: many such tasks share one look. */
const UNSERVED_LOOK_MS = 1_000;
/** The longest it sleeps: a clock that jumps, or a signal that got lost, is noticed after this at the latest. */
const POLL_MS = 5_000;

export interface TimekeeperOptions extends ServiceOptions {
  readonly storage: Storage;
  readonly storageClock: StorageClock;
  readonly metrics: MetricsByTenant;
  /** Told when tasks were moved into the queue. */
  readonly onPromoted: () => void;
  /** Told when tasks were failed. */
  readonly onExpired: () => void;
  /** How long a task waits for an executor that no live node has. */
  readonly noExecutorMs: () => number;
}

/** Waits for the next due moment of anything: delayed tasks move into the queue, overdue ones are failed. */
export class Timekeeper extends Service {
  readonly name = "timekeeper";
  readonly #options: TimekeeperOptions;

  constructor(options: TimekeeperOptions) {
    super(options);
    this.#options = options;
  }

  /** Something is due at this moment of the storage's clock. */
  expect(at: number): void {
    this.wake(Math.max(at - this.#options.storageClock.now(), 0));
  }

  /** A task came that no live node can execute: its time counts from the next look on. */
  expectUnserved(): void {
    this.wake(Math.min(this.#options.noExecutorMs(), UNSERVED_LOOK_MS));
  }

  async tick(): Promise<number> {
    const { storage, storageClock, metrics, onPromoted, onExpired, noExecutorMs } = this.#options;
    await storageClock.sync();
    const { promoted } = await storage.tasks.promoteDue({ limit: SLICE });
    if (promoted > 0) onPromoted();
    const { expired } = await storage.tasks.expire({ limit: SLICE });
    metrics.expired(expired);
    if (expired.length > 0) onExpired();
    const { failed, nextAt } = await storage.tasks.failUnserved({ afterMs: noExecutorMs(), limit: SLICE });
    metrics.unserved(failed);
    if (failed.length > 0) onExpired();
    if (promoted === SLICE || expired.length === SLICE) return 0;
    return this.#untilNext(await storage.tasks.nextDueAt(), nextAt);
  }

  #untilNext(...moments: readonly (number | null)[]): number {
    const dueAt = Math.min(...moments.map((moment) => moment ?? Number.POSITIVE_INFINITY));
    if (dueAt === Number.POSITIVE_INFINITY) return POLL_MS;
    // At least a millisecond: a moment that is due but yields nothing, because the clocks differ by a hair, must not
    // keep the process busy.
    return Math.min(Math.max(dueAt - this.#options.storageClock.now(), 1), POLL_MS);
  }
}
