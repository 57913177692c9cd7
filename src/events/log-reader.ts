import type { FollowedLog, LogEntry } from "./followed-log.ts";

/** What is kept for a reader that is slower than the log. Beyond it reads on from the storage at its own pace. */
const BUFFER_BYTES_MAX = 1_048_576;
/** What an entry takes besides what it says of itself. */
const ENTRY_BYTES = 256;

export interface LogReaderOptions {
  /** The last entry seen; 0 for all there are; undefined: from now on. */
  readonly after?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly onGap?: ((gap: { readonly after: number; readonly oldest: number }) => void) | undefined;
  /** Called when more has piled up for it than is kept. */
  readonly onBehind?: (() => void) | undefined;
  /** Called when it has ended, whoever ended it. */
  readonly onEnd?: (() => void) | undefined;
}

/**
 * One reader's way through a log. Live, it is handed every entry as it happens; behind, because it began in the
 * past or its buffer overflowed, it reads pages from the storage until it has caught up. Either way it misses nothing
 * and nobody waits for it.
 */
export class LogReader<Value, Shown extends object> implements AsyncIterableIterator<Shown, undefined> {
  readonly #log: FollowedLog<Value>;
  readonly #options: LogReaderOptions;
  readonly #pick: (value: Value) => Shown | undefined;
  readonly #stopListening: () => void;
  readonly #begun: Promise<void>;
  #buffer: { readonly seq: number; readonly shown: Shown; readonly bytes: number }[] = [];
  #bytes = 0;
  /** The last entry put into the buffer, or passed over because nobody asked for it. */
  #seen = 0;
  /** The last entry handed out; before the first, where reading began. */
  #handedOut: number | undefined;
  #live = false;
  #ended = false;
  #wake: (() => void) | null = null;

  /** `pick` answers what the reader sees of an entry, or that it did not ask for it. */
  constructor(
    log: FollowedLog<Value>,
    pick: (value: Value) => Shown | undefined,
    options: LogReaderOptions = {},
  ) {
    this.#log = log;
    this.#pick = pick;
    this.#options = options;
    this.#stopListening = log.listen(
      (_value, entry) => this.#offer(entry),
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

  async next(): Promise<IteratorResult<Shown, undefined>> {
    try {
      const value = await this.#next();
      return value === undefined ? { done: true, value } : { done: false, value };
    } catch (error) {
      this.#end();
      throw error;
    }
  }

  async return(): Promise<IteratorResult<Shown, undefined>> {
    this.#end();
    return { done: true, value: undefined };
  }

  async #next(): Promise<Shown | undefined> {
    await this.#begun;
    while (!this.#ended) {
      const next = this.#buffer.shift();
      if (next !== undefined) {
        this.#bytes -= next.bytes;
        this.#handedOut = next.seq;
        return next.shown;
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
    const { oldest, newest } = await this.#log.source.range();
    // Beyond the newest lies nothing: the number is from another storage, or everything has been deleted since.
    const beyond = after > newest;
    if (after > 0 && (beyond || after + 1 < oldest)) onGap?.({ after, oldest });
    this.#seen = beyond ? 0 : Math.max(after, oldest - 1);
    this.#handedOut = this.#seen;
  }

  #offer(entry: LogEntry<Value>): void {
    if (!this.#live || entry.seq <= this.#seen) return;
    const shown = this.#pick(entry.value);
    if (shown !== undefined && this.#bytes >= BUFFER_BYTES_MAX) {
      this.#live = false;
      this.#options.onBehind?.();
      return;
    }
    this.#take(entry, shown);
    if (shown === undefined) return;
    this.#wake?.();
    this.#wake = null;
  }

  async #catchUp(): Promise<void> {
    const handedOn = this.#log.position;
    const { entries, more, upTo } = await this.#log.source.read(this.#seen);
    for (const entry of entries) this.#take(entry, this.#pick(entry.value));
    this.#seen = Math.max(this.#seen, upTo);
    // Live again once everything that has been handed on so far is either in the buffer or no longer anywhere.
    const nothingLeft = entries.length === 0 && !more && this.#log.position === handedOn;
    this.#live = nothingLeft || this.#seen >= this.#log.position;
    // Whoever looks for little in a long log must not keep everybody else waiting while it looks.
    if (this.#buffer.length === 0) await new Promise((resolve) => setImmediate(resolve));
  }

  #take({ seq, bytes }: LogEntry<Value>, shown: Shown | undefined): void {
    this.#seen = seq;
    if (shown === undefined) return;
    this.#bytes += bytes + ENTRY_BYTES;
    this.#buffer.push({ seq, shown, bytes: bytes + ENTRY_BYTES });
  }

  #end = (): void => {
    if (!this.#ended) this.#options.onEnd?.();
    this.#ended = true;
    this.#stopListening();
    this.#options.signal?.removeEventListener("abort", this.#end);
    this.#wake?.();
    this.#wake = null;
  };
}
