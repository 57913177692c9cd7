import { endOfAttempt, type WorkerSignal } from "../../model/worker.ts";
import type { Storage, WorkerRecord } from "../../storage/storage.ts";
import type { WorkerDispatcher } from "./worker-dispatcher.ts";
import type { WorkerRecords } from "./worker-records.ts";

/** How many signals wait for a worker that does not read. Further ones are dropped: its heartbeats say the same. */
const WAITING_MAX = 1_000;

export interface WorkerSignalsOptions {
  readonly storage: Storage;
  readonly records: WorkerRecords;
  readonly dispatcher: WorkerDispatcher;
}

/**
 * Passes on to workers what another request, or another node, decided about them: that an attempt is over, and that they should
 * drain. Signals of the storage can be lost, so a worker relies on its heartbeats all the same.
 */
export class WorkerSignals {
  readonly #options: WorkerSignalsOptions;
  /** The open stream of each worker. */
  readonly #feeds = new Map<string, SignalFeed>();
  /** The fencing tokens that are looked up next. */
  #tokens: number[] = [];
  #isLooking = false;

  constructor(options: WorkerSignalsOptions) {
    this.#options = options;
  }

  /** Opens the stream of a worker. An older one ends. */
  open(worker: WorkerRecord): SignalFeed {
    const { id } = worker;
    this.#feeds.get(id)?.end();
    const feed = new SignalFeed(worker, () => {
      if (this.#feeds.get(id) === feed) this.#feeds.delete(id);
    });
    this.#feeds.set(id, feed);
    // The record may be old, and what happened before this stream was open is not signalled again.
    this.changed([id]);
    return feed;
  }

  /** Rota ended these attempts. */
  fenced(tokens: readonly number[]): void {
    if (this.#feeds.size === 0) return;
    this.#tokens.push(...tokens);
    if (!this.#isLooking) void this.#lookUp();
  }

  /** These workers were registered again, drained or removed. */
  changed(ids: readonly string[]): void {
    const { records, dispatcher } = this.#options;
    const { polls } = dispatcher;
    for (const id of ids) {
      records.changed(id);
      const worker = this.#feeds.get(id)?.worker ?? polls.of(id)[0]?.request.worker;
      if (worker !== undefined) void this.#reread(worker.tenant, id);
    }
  }

  /** Signals may have been lost. */
  reconnected(): void {
    this.#options.records.clear();
    this.changed([...this.#feeds.keys()]);
  }

  async #reread(tenant: string, id: string): Promise<void> {
    const { records, dispatcher } = this.#options;
    const record = await records.get(tenant, id).catch(() => undefined);
    if (record === undefined) return;
    const feed = this.#feeds.get(id);
    // Only the key that registered a worker last may act for it.
    if (record === null || (feed !== undefined && record.key !== feed.worker.key)) feed?.end();
    if (record === null) dispatcher.polls.endOf(id, "gone");
    if (record?.draining !== true) return;
    feed?.add({ type: "drain" });
    dispatcher.polls.endOf(id, "drained");
  }

  async #lookUp(): Promise<void> {
    const { storage } = this.#options;
    this.#isLooking = true;
    while (this.#tokens.length > 0) {
      const tokens = this.#tokens;
      this.#tokens = [];
      const ended = await storage.workers.attempts({ tokens }).catch(() => []);
      const over = ended.filter(({ worker, held }) => !held && this.#feeds.has(worker));
      const ends = await storage.workers.ends({ attempts: over }).catch(() => []);
      for (const [index, { worker, taskId, number }] of over.entries()) {
        const cancel = endOfAttempt(ends[index] ?? null);
        this.#feeds.get(worker)?.add({ type: "cancel", taskId, number, cancel });
      }
    }
    this.#isLooking = false;
  }
}

/** The signals of one worker, for one reader. */
export class SignalFeed implements AsyncIterable<WorkerSignal> {
  readonly worker: WorkerRecord;
  readonly #onEnd: () => void;
  readonly #waiting: WorkerSignal[] = [];
  #isOver = false;
  #wake: () => void = () => {};

  constructor(worker: WorkerRecord, onEnd: () => void) {
    this.worker = worker;
    this.#onEnd = onEnd;
  }

  add(signal: WorkerSignal): void {
    if (this.#waiting.length < WAITING_MAX) this.#waiting.push(signal);
    this.#wake();
  }

  /** Idempotent. What waits is not read any more. */
  end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#onEnd();
    this.#wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<WorkerSignal, void> {
    while (!this.#isOver) {
      const signal = this.#waiting.shift();
      if (signal !== undefined) {
        yield signal;
        continue;
      }
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    }
  }
}
