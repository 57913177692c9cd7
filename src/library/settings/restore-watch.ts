import { LogCursor } from "../../events/log-cursor.ts";
import type { LogSource } from "../../events/log-source.ts";
import { Service, type ServiceOptions } from "../../services/service.ts";
import type { Storage } from "../../storage/storage.ts";

/** A restored state is at least this old, or a reader of events notices the restore. Each look costs three small reads. */
const LOOK_MS = 1_000;

export interface RestoreWatchOptions extends ServiceOptions {
  readonly storage: Storage;
  /** The log of events, whose end it watches. */
  readonly source: LogSource<unknown>;
  /** Called when the database turns out to have been restored to an earlier state. */
  readonly onRestored: () => void;
}

/**
 * Detects that the database was restored to an earlier state under a running node: by a restored backup, or a fail-over to a
 * replica that lagged behind. It remembers the newest event and checks that it still exists, also while there are no readers
 * of events.
 */
export class RestoreWatch extends Service<RestoreWatchOptions> {
  readonly name = "restore watch";
  readonly #cursor: LogCursor<unknown>;

  constructor(options: RestoreWatchOptions) {
    super(options);
    this.#cursor = new LogCursor(options.source);
  }

  async tick(): Promise<number> {
    const { events } = this.options.storage;
    const isTakenBack = await this.#cursor.isTakenBack();
    if (isTakenBack) {
      this.log.warn(
        { lastEvent: this.#cursor.seq },
        "the database was restored to an earlier state; reading everything again",
      );
      this.options.onRestored();
    }
    const { newest } = await events.range();
    // The restore happened between the two reads: the next look finds it.
    if (!isTakenBack && newest < this.#cursor.seq) return 0;
    this.#cursor.moveTo(newest, await events.mark({ seq: newest }));
    return LOOK_MS;
  }
}
