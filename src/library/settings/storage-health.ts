import { within } from "../../clock/within.ts";
import type { Clock } from "../../model/clock.ts";
import type { Log } from "../../model/log.ts";
import type { Storage } from "../../storage/storage.ts";

/** A storage that takes longer than this to write counts as unavailable: callers of `/health` want a quick response. */
const PATIENCE_MS = 2_000;
/** How long a result is cached: anyone may call `/health`, and each check is a write that waits for the disk. */
const FRESH_MS = 1_000;

/** Why the storage cannot be written; null: it can. */
type Trouble = string | null;

/** Checks whether the storage can be written. Logs when that changes. */
export class StorageHealth {
  readonly #storage: Storage;
  readonly #clock: Clock;
  readonly #log: Log;
  #looking: Promise<Trouble> | null = null;
  #found: { readonly trouble: Trouble; readonly at: number } | null = null;

  constructor({ storage, clock, log }: { storage: Storage; clock: Clock; log: Log }) {
    this.#storage = storage;
    this.#clock = clock;
    this.#log = log;
  }

  /** Why the storage cannot be written; null: it can. The result is up to `FRESH_MS` old. */
  async trouble(): Promise<Trouble> {
    const isFresh = this.#found !== null && this.#clock.monotonic() - this.#found.at < FRESH_MS;
    if (this.#found !== null && isFresh) return this.#found.trouble;
    this.#looking ??= this.#look().finally(() => {
      this.#looking = null;
    });
    return this.#looking;
  }

  async #look(): Promise<Trouble> {
    const checked = this.#storage.check().then(
      () => null,
      (error: Error) => this.#say(error),
    );
    const trouble = await within({
      clock: this.#clock,
      ms: PATIENCE_MS,
      work: checked,
      onLate: () => "the storage does not respond",
    });
    this.#logChange(trouble);
    this.#found = { trouble, at: this.#clock.monotonic() };
    return trouble;
  }

  /** Anyone may call `/health`. Errors of PostgreSQL name hosts and users, so that they go only to the log. */
  #say(error: Error): string {
    this.#log.debug({ error }, "the storage cannot be written");
    return this.#storage.capabilities.exclusive ? error.message : "the storage cannot be written";
  }

  #logChange(trouble: Trouble): void {
    const before = this.#found?.trouble ?? null;
    if (trouble !== null && before === null) {
      this.#log.error({ trouble }, "cannot write to the storage; this node is not ready until writing works");
    }
    if (trouble === null && before !== null) this.#log.info({}, "writing to the storage works again");
  }
}
