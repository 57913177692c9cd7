import { Service, type ServiceOptions } from "../../services/service.ts";
import type { StorageClock } from "../../services/storage-clock.ts";
import type { Storage } from "../../storage/storage.ts";
import type { MetricsByTenant } from "../work/metrics-by-tenant.ts";

/** Tasks moved in one transaction: many due tasks at once must not block other writes for long. */
const SLICE = 500;
/** The delay after a task was inserted that no live node can execute: many such tasks share one check. */
const UNSERVED_LOOK_MS = 1_000;
/** The longest sleep: a clock that jumps, or a lost signal, is noticed after this time at the latest. */
const POLL_MS = 5_000;

export interface TimekeeperOptions extends ServiceOptions {
  readonly storage: Storage;
  readonly storageClock: StorageClock;
  readonly metrics: MetricsByTenant;
  /** Called after tasks were moved into the queue. */
  readonly onPromoted: () => void;
  /** Called after tasks were failed. */
  readonly onExpired: () => void;
  /** How long a task stays queued while no live node can execute it. Then it fails. */
  readonly noExecutorMs: () => number;
}

/** Moves delayed tasks into the queue when they are due, and fails overdue ones. Sleeps until the next such time. */
export class Timekeeper extends Service<TimekeeperOptions> {
  readonly name = "timekeeper";

  /** The caller knows of a task that is due at this time of the storage's clock. */
  expect(at: number): void {
    this.wake(Math.max(at - this.options.storageClock.now(), 0));
  }

  /** A task was inserted that no live node can execute. Its waiting time counts from the next check. */
  expectUnserved(): void {
    this.wake(Math.min(this.options.noExecutorMs(), UNSERVED_LOOK_MS));
  }

  async tick(): Promise<number> {
    const { storage, storageClock, metrics, onPromoted, onExpired, noExecutorMs } = this.options;
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
    const dueAt = (await storage.tasks.nextDueAt()) ?? Number.POSITIVE_INFINITY;
    return storageClock.sleepMs(Math.min(dueAt, nextAt ?? dueAt), POLL_MS);
  }
}
