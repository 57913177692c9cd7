import { Service, type ServiceOptions } from "../services/service.ts";
import type { AuditChainPoint, AuditFacts, NewAuditEntry, Storage } from "../storage/storage.ts";
import { CHAIN_START, linked } from "./audit-chain.ts";

/** How long an entry may wait for others, to be written together with them. */
const GATHER_MS = 100;
const SLICE = 500;
/** More entries wait only while the storage is unavailable, and then no change succeeds that would need an entry. */
const WAITING_MAX = 100_000;
const PRUNE_EVERY_MS = 60 * 60 * 1_000;

export interface AuditLogOptions extends ServiceOptions {
  readonly storage: Storage;
  readonly retentionMs: () => number;
  /** The node membership: its entries are a chain. */
  readonly chain: () => string;
}

interface Waiting {
  readonly entry: AuditFacts;
  readonly written?: (error?: unknown) => void;
}

/** Writes entries to the audit log, many at once, and deletes old ones. */
export class AuditLog extends Service<AuditLogOptions> {
  readonly name = "audit log";
  #waiting: Waiting[] = [];
  #writing: Promise<void> = Promise.resolve();
  #prunedAt = Number.NEGATIVE_INFINITY;
  #end: AuditChainPoint & { readonly chain: string } = { chain: "", ...CHAIN_START };
  /** Entries whose write failed. The storage may have written them all the same. */
  #unsure: { readonly last: NewAuditEntry | null; readonly slice: readonly Waiting[] } | null = null;

  /** Queues an entry, which is written after `GATHER_MS` together with others. */
  record(entry: AuditFacts): void {
    if (this.#waiting.length >= WAITING_MAX) {
      this.log.error({ route: entry.route, keyId: entry.keyId }, "the audit log is full: this is not in it");
      return;
    }
    this.#waiting.push({ entry });
    this.start();
    this.wake(GATHER_MS);
  }

  /** The entry, and all queued before it, are durable once this resolves. */
  async write(entry: AuditFacts): Promise<void> {
    const written = Promise.withResolvers<void>();
    this.#waiting.push({
      entry,
      written: (error) => (error === undefined ? written.resolve() : written.reject(error)),
    });
    // A failure rejects the promise that the caller waits for.
    this.flush().catch(() => {});
    return written.promise;
  }

  /** The storage was restored to an earlier state: the chain continues from its last stored entry. */
  restored(): void {
    this.#unsure ??= { last: null, slice: [] };
  }

  async tick(): Promise<number> {
    await this.flush();
    if (this.clock.monotonic() - this.#prunedAt >= PRUNE_EVERY_MS) await this.#prune();
    return PRUNE_EVERY_MS;
  }

  /** Writes all waiting entries, in order. */
  flush(): Promise<void> {
    this.#writing = this.#writing.catch(() => {}).then(() => this.#flush());
    return this.#writing;
  }

  async #flush(): Promise<void> {
    while (this.#waiting.length > 0) {
      if (await this.#findEnd()) continue;
      const slice = this.#waiting.splice(0, SLICE);
      await this.#append(slice);
      for (const { written } of slice) written?.();
    }
  }

  async #append(slice: readonly Waiting[]): Promise<void> {
    const { storage } = this.options;
    const facts = slice.map(({ entry }) => entry);
    const entries = linked(facts, this.#end.chain, this.#end);
    const last = entries.at(-1) as NewAuditEntry;
    try {
      await storage.audit.append({ entries });
    } catch (error) {
      this.#unsure = { last, slice };
      for (const { written } of slice) written?.(error);
      this.#waiting.unshift(...slice.filter(({ written }) => written === undefined));
      throw error;
    }
    this.#end = last;
  }

  /**
   * After a failure, reads the last entry of the chain from the storage: the write may have succeeded and only its response was
   * lost. Returns whether the waiting entries have changed.
   */
  async #findEnd(): Promise<boolean> {
    const { storage, chain } = this.options;
    if (this.#unsure !== null) {
      const { last, slice } = this.#unsure;
      const { chain: written } = this.#end;
      const end = (await storage.audit.endOf({ chain: written })) ?? CHAIN_START;
      if (end.hash === last?.hash) this.#waiting = this.#waiting.filter((each) => !slice.includes(each));
      this.#end = { chain: written, ...end };
      this.#unsure = null;
      return true;
    }
    if (this.#end.chain !== chain()) this.#end = { chain: chain(), ...CHAIN_START };
    return false;
  }

  async #prune(): Promise<void> {
    const { storage, retentionMs } = this.options;
    for (let more = true; more; ) {
      ({ more } = await storage.audit.prune({ retentionMs: retentionMs(), limit: SLICE }));
    }
    this.#prunedAt = this.clock.monotonic();
  }
}
