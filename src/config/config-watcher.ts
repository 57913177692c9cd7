import { systemClock } from "../clock/system-clock.ts";
import type { Clock, Timer } from "../model/clock.ts";
import { invalidField, preview, quoted } from "../model/input/field-checks.ts";

/** The methods of a Rota that a watcher calls. */
export interface Reloadable<Options> {
  reload(options: Options): Promise<unknown>;
  /** Called after every look with the error, or null if there was none. It should report each error once. */
  configFault?(error: Error | null): void;
}

export interface ConfigWatcherOptions {
  /** For tests: the source of time. */
  readonly clock?: Clock;
}

/** From one `start` to the next `stop`. */
interface Watch {
  timer: Timer | null;
  looking: boolean;
  /** `look` was called while one was under way. */
  again: boolean;
}

/**
 * Reads a configuration repeatedly, and passes it to `rota.reload`. A configuration that cannot be read or used changes nothing.
 * The log reports each fault once, and that it works again; `rota.health()` shows the current fault.
 *
 * @example
 * const watcher = new ConfigWatcher(30_000, async () => JSON.parse(await readFile("rota.json", "utf8")), rota);
 * watcher.start();
 */
export class ConfigWatcher<Options> {
  readonly #intervalMs: number;
  readonly #load: () => Options | Promise<Options>;
  readonly #rota: Reloadable<Options>;
  readonly #clock: Clock;
  #watch: Watch | null = null;

  constructor(
    intervalMs: number,
    load: () => Options | Promise<Options>,
    rota: Reloadable<Options>,
    { clock = systemClock }: ConfigWatcherOptions = {},
  ) {
    if (typeof intervalMs !== "number" || !(intervalMs > 0)) {
      throw invalidField("intervalMs", `\`intervalMs\` must be a number above 0, not ${quoted(intervalMs)}`);
    }
    this.#intervalMs = intervalMs;
    this.#load = load;
    this.#rota = rota;
    this.#clock = clock;
  }

  /** Reads at once, and then every `intervalMs`. */
  start(): void {
    this.#watch ??= { timer: null, looking: false, again: false };
    this.look();
  }

  /** A configuration that is being read is not applied any more. Stopping twice is fine. */
  stop(): void {
    this.#watch?.timer?.cancel();
    this.#watch = null;
  }

  /** Reads now, or again right after a read that is under way: the configuration may have changed since that began. */
  look(): void {
    const watch = this.#watch;
    if (watch === null) return;
    if (watch.looking) watch.again = true;
    else void this.#look(watch);
  }

  /** Never two at once: it waits for a slow load, so that the later configuration wins. */
  async #look(watch: Watch): Promise<void> {
    watch.looking = true;
    watch.timer?.cancel();
    do {
      watch.again = false;
      await this.#reload(watch);
    } while (watch.again && watch === this.#watch);
    watch.looking = false;
    if (watch === this.#watch)
      watch.timer = this.#clock.setTimer(this.#intervalMs, () => void this.#look(watch));
  }

  async #reload(watch: Watch): Promise<void> {
    let fault: Error | null = null;
    try {
      const options = await this.#load();
      if (watch === this.#watch) await this.#rota.reload(options);
    } catch (error) {
      fault =
        error instanceof Error ? error : new Error(`the configuration cannot be loaded: ${preview(error)}`);
    }
    if (watch === this.#watch) this.#rota.configFault?.(fault);
  }
}
