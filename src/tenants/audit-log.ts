import { createHash } from "node:crypto";
import { Service, type ServiceOptions } from "../services/service.ts";
import type { NewAuditEntry, Storage } from "../storage/storage.ts";

/** How long what was done may wait for others, to be written down together. */
const GATHER_MS = 100;
const SLICE = 500;
/** More than this waits only while the storage is away, and then nothing is done that would have to be told. */
const WAITING_MAX = 100_000;
const PRUNE_EVERY_MS = 60 * 60 * 1_000;

export interface AuditLogOptions extends ServiceOptions {
  readonly storage: Storage;
  readonly retentionMs: () => number;
}

interface Waiting {
  readonly entry: NewAuditEntry;
  readonly written?: (error?: unknown) => void;
}

/** Writes down who did what, many at once, and forgets what is too old. */
export class AuditLog extends Service {
  readonly name = "audit log";
  readonly #options: AuditLogOptions;
  #waiting: Waiting[] = [];
  #writing: Promise<void> = Promise.resolve();
  #prunedAt = Number.NEGATIVE_INFINITY;

  constructor(options: AuditLogOptions) {
    super(options);
    this.#options = options;
  }

  /** Soon. */
  note(entry: NewAuditEntry): void {
    if (this.#waiting.length >= WAITING_MAX) {
      this.log.error({ route: entry.route, keyId: entry.keyId }, "the audit log is full: this is not in it");
      return;
    }
    this.#waiting.push({ entry });
    this.start();
    this.wake(GATHER_MS);
  }

  /** Durable once this answers, with all that was noted before it. */
  async write(entry: NewAuditEntry): Promise<void> {
    const written = Promise.withResolvers<void>();
    this.#waiting.push({
      entry,
      written: (error) => (error === undefined ? written.resolve() : written.reject(error)),
    });
    // What fails is told to whoever waits for it, and left to them.
    this.flush().catch(() => {});
    return written.promise;
  }

  async tick(): Promise<number> {
    await this.flush();
    if (this.clock.monotonic() - this.#prunedAt >= PRUNE_EVERY_MS) await this.#prune();
    return PRUNE_EVERY_MS;
  }

  /** Writes all that waits, in order. */
  flush(): Promise<void> {
    this.#writing = this.#writing.catch(() => {}).then(() => this.#flush());
    return this.#writing;
  }

  async #flush(): Promise<void> {
    while (this.#waiting.length > 0) {
      const slice = this.#waiting.splice(0, SLICE);
      try {
        await this.#options.storage.audit.append({ entries: slice.map(({ entry }) => entry) });
      } catch (error) {
        for (const { written } of slice) written?.(error);
        this.#waiting.unshift(...slice.filter(({ written }) => written === undefined));
        throw error;
      }
      for (const { written } of slice) written?.();
    }
  }

  async #prune(): Promise<void> {
    const { storage, retentionMs } = this.#options;
    for (let more = true; more; ) {
      ({ more } = await storage.audit.prune({ retentionMs: retentionMs(), limit: SLICE }));
    }
    this.#prunedAt = this.clock.monotonic();
  }
}

/** What stays of a name in the log after its tenant is gone. */
export function digestOf(subject: string): string {
  return createHash("sha256").update(subject).digest("base64url");
}
