import type { Clock, Timer } from "../model/clock.ts";
import type { Log } from "../model/log.ts";
import { type Backoff, backoffMs } from "./backoff.ts";
import { isStorageAway } from "./storage-away.ts";

export interface ServiceOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly random: () => number;
}

/** The back-off after a failed tick. */
const RETRY: Backoff = { firstMs: 50, maxMs: 5_000 };

/**
 * A background service. `tick` does one unit of work and returns the milliseconds until the next tick; `wake` asks for an
 * earlier one. Ticks never overlap: a wake during a tick causes another right after it. A tick that throws is retried with
 * back-off. The first failure in a row and the recovery are logged, not each retry.
 */
export abstract class Service<Options extends ServiceOptions = ServiceOptions> {
  protected readonly options: Options;
  protected readonly clock: Clock;
  protected readonly log: Log;
  protected readonly random: () => number;
  #started = false;
  #busy: Promise<void> | null = null;
  #failures = 0;
  #timer: Timer | null = null;
  #immediate: NodeJS.Immediate | null = null;
  /** When the next tick is due, by the monotonic clock. */
  #dueAt = Number.POSITIVE_INFINITY;

  constructor(options: Options) {
    this.options = options;
    this.clock = options.clock;
    this.log = options.log;
    this.random = options.random;
  }

  /** The name of the service in the log. */
  abstract readonly name: string;

  /** Does one unit of work. Returns the milliseconds until the next tick; 0: in the next turn of the event loop. */
  abstract tick(): Promise<number>;

  start(): void {
    if (this.#started) return;
    this.#started = true;
    this.#failures = 0;
    this.wake();
  }

  /** Resolves once the tick under way, if any, has ended. */
  async stop(): Promise<void> {
    this.#started = false;
    this.#disarm();
    await this.#busy;
  }

  /** Asks for a tick within `delayMs`. Does not shorten the back-off after a failure. */
  wake(delayMs = 0): void {
    if (!this.#started || this.#immediate !== null) return;
    const at = this.clock.monotonic() + delayMs;
    if (at >= this.#dueAt) return;
    if (this.#busy !== null) this.#dueAt = at;
    else if (this.#failures === 0) this.#arm(at);
  }

  #arm(at: number): void {
    this.#disarm();
    this.#dueAt = at;
    const delayMs = at - this.clock.monotonic();
    // An immediate runs after everything else that is ready in this turn of the event loop. A timer of 0 would wait a
    // whole millisecond.
    if (delayMs <= 0) this.#immediate = setImmediate(this.#run);
    else this.#timer = this.clock.setTimer(delayMs, this.#run);
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = null;
    clearImmediate(this.#immediate ?? undefined);
    this.#immediate = null;
    this.#dueAt = Number.POSITIVE_INFINITY;
  }

  #run = (): void => {
    this.#disarm();
    // Busy before the tick begins: it may cause a wake before its first await, as a storage does that signals what it wrote.
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#busy = promise;
    void this.#tickOnce().then((delayMs) => {
      this.#busy = null;
      resolve();
      if (!this.#started) return;
      const own = this.clock.monotonic() + delayMs;
      // A call of `wake` during the tick may ask for an earlier tick, but does not shorten the back-off.
      this.#arm(this.#failures > 0 ? own : Math.min(own, this.#dueAt));
    });
  };

  async #tickOnce(): Promise<number> {
    try {
      const delayMs = await this.tick();
      if (this.#failures > 0) this.log.info({ service: this.name, failures: this.#failures }, "works again");
      this.#failures = 0;
      return delayMs;
    } catch (error) {
      if (this.#failures === 0 && this.#started) this.#logFailure(error);
      this.#failures += 1;
      return backoffMs(RETRY, this.#failures, this.random);
    }
  }

  #logFailure(error: unknown): void {
    const fields = { service: this.name, error };
    if (isStorageAway(error)) {
      this.log.warn(fields, "the storage does not respond; trying again until it does");
    } else {
      this.log.error(fields, "failed; trying again");
    }
  }
}
