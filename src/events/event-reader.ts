import type { RotaEvent } from "../model/event.ts";
import { type EventLog, PAGE } from "./event-log.ts";
import { toEvent } from "./to-event.ts";

/** What is kept for a reader that is slower than the log. Beyond it reads on from the storage at its own pace. */
const BUFFER_MAX = { events: 1_000, bytes: 8 * 1_048_576 } as const;

export interface EventReaderOptions {
  /** The last event seen; 0 for all there are; undefined: from now on. */
  readonly after?: number | undefined;
  readonly agentId?: string | undefined;
  readonly batchId?: string | undefined;
  readonly sessionKey?: string | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onGap?: ((gap: { readonly after: number; readonly oldest: number }) => void) | undefined;
}

/**
 * One reader's way through the log. Live, it is handed every event as it happens; behind, because it began in the
 * past or its buffer overflowed, it reads pages from the storage until it has caught up. Either way it misses nothing
 * and nobody waits for it.
 */
export class EventReader implements AsyncIterableIterator<RotaEvent, undefined> {
  readonly #log: EventLog;
  readonly #options: EventReaderOptions;
  readonly #stopListening: () => void;
  readonly #begun: Promise<void>;
  #buffer: { readonly event: RotaEvent; readonly bytes: number }[] = [];
  #bytes = 0;
  /** The last event put into the buffer, or passed over because nobody asked for it. */
  #seen = 0;
  /** The last event handed out; before the first, where reading began. */
  #handedOut: number | undefined;
  #live = false;
  #ended = false;
  #wake: (() => void) | null = null;

  constructor(log: EventLog, options: EventReaderOptions = {}) {
    this.#log = log;
    this.#options = options;
    this.#stopListening = log.listen(
      (event, bytes) => this.#offer(event, bytes),
      () => this.#end(),
    );
    this.#begun = this.#begin();
    // Whoever iterates is told; a reader that nobody iterates yet must not end the process.
    this.#begun.catch(() => {});
    if (options.signal?.aborted) this.#end();
    else options.signal?.addEventListener("abort", this.#end, { once: true });
  }

  get ready(): Promise<void> {
    return this.#begun;
  }

  get position(): number | undefined {
    return this.#handedOut === undefined || this.#buffer.length > 0 ? this.#handedOut : this.#seen;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<RotaEvent, undefined>> {
    try {
      const value = await this.#next();
      if (value !== undefined) this.#handedOut = value.seq;
      return value === undefined ? { done: true, value } : { done: false, value };
    } catch (error) {
      this.#end();
      throw error;
    }
  }

  async return(): Promise<IteratorResult<RotaEvent, undefined>> {
    this.#end();
    return { done: true, value: undefined };
  }

  async #next(): Promise<RotaEvent | undefined> {
    await this.#begun;
    while (!this.#ended) {
      const next = this.#buffer.shift();
      if (next !== undefined) {
        this.#bytes -= next.bytes;
        return next.event;
      }
      if (this.#live) await this.#somethingNew();
      else await this.#catchUp();
    }
    return undefined;
  }

  #somethingNew(): Promise<void> {
    return new Promise((resolve) => {
      this.#wake = resolve;
    });
  }

  async #begin(): Promise<void> {
    await this.#log.ready;
    const { after, onGap } = this.#options;
    if (after === undefined) {
      this.#seen = this.#log.position;
      this.#handedOut = this.#seen;
      this.#live = true;
      return;
    }
    const { oldest, newest } = await this.#log.storage.events.range();
    // Beyond the newest lies nothing: the number is from another storage, or everything has been deleted since.
    const beyond = after > newest;
    if (after > 0 && (beyond || after + 1 < oldest)) onGap?.({ after, oldest });
    this.#seen = beyond ? 0 : Math.max(after, oldest - 1);
    this.#handedOut = this.#seen;
  }

  #offer(event: RotaEvent, bytes: number): void {
    if (!this.#live || event.seq <= this.#seen) return;
    if (!this.#fits(event)) {
      this.#seen = event.seq;
      return;
    }
    if (this.#buffer.length >= BUFFER_MAX.events || this.#bytes >= BUFFER_MAX.bytes) {
      this.#live = false;
      return;
    }
    this.#push(event, bytes);
    this.#wake?.();
    this.#wake = null;
  }

  async #catchUp(): Promise<void> {
    const handedOn = this.#log.position;
    const { events, more, upTo } = await this.#log.storage.events.read({ after: this.#seen, ...PAGE });
    for (const stored of events) {
      const event = toEvent(stored);
      if (this.#fits(event)) this.#push(event, stored.bytes);
      else this.#seen = event.seq;
    }
    this.#seen = Math.max(this.#seen, upTo);
    // Live again once everything that has been handed on so far is either in the buffer or no longer anywhere.
    const nothingLeft = events.length === 0 && !more && this.#log.position === handedOn;
    this.#live = nothingLeft || this.#seen >= this.#log.position;
    // Whoever looks for little in a long log must not keep everybody else waiting while it looks.
    if (this.#buffer.length === 0) await new Promise((resolve) => setImmediate(resolve));
  }

  #fits(event: RotaEvent): boolean {
    const { agentId, batchId, sessionKey } = this.#options;
    return (
      (agentId === undefined || event.agentId === agentId) &&
      (batchId === undefined || event.batchId === batchId) &&
      (sessionKey === undefined || event.sessionKey === sessionKey)
    );
  }

  #push(event: RotaEvent, bytes: number): void {
    this.#seen = event.seq;
    this.#bytes += bytes;
    this.#buffer.push({ event, bytes });
  }

  #end = (): void => {
    this.#ended = true;
    this.#stopListening();
    this.#options.signal?.removeEventListener("abort", this.#end);
    this.#wake?.();
    this.#wake = null;
  };
}
