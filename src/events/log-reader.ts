import type { ReadPace } from "../model/read-pace.ts";
import type { FollowedLog } from "./followed-log.ts";
import { LogCursor } from "./log-cursor.ts";
import type { LogEntry, LogSource } from "./log-source.ts";

/** The buffer of a reader that is slower than the log. When it is full, the reader reads from the storage at its own pace. */
const BUFFER_BYTES_MAX = 1_048_576;
/** The bytes of an entry besides its own `bytes`. */
const ENTRY_BYTES = 256;

export interface LogReaderOptions {
  /** The last entry that the reader has seen; 0: read all entries; undefined: only new ones. */
  readonly after?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Called when entries after `after` are missing: before the first entry, or later if the database is restored. */
  readonly onGap?: ((gap: { readonly after: number; readonly oldest: number }) => void) | undefined;
  /** Called when its buffer is full and it falls behind. */
  readonly onBehind?: (() => void) | undefined;
  /** Schedules each read from the storage. Left out: reads at once. */
  readonly pace?: ReadPace | undefined;
  /** Called when the reader has ended, for any reason. */
  readonly onEnd?: (() => void) | undefined;
}

/**
 * One reader of a log. While live, it gets every entry as it is written. While behind, because it began in the past or its
 * buffer was full, it reads pages from the storage until it has caught up. Either way it misses no entry and does not delay
 * other readers. When the database is restored to an earlier state, it reports a gap and continues.
 */
export class LogReader<Value, Shown extends object> implements AsyncIterableIterator<Shown, undefined> {
  readonly #log: FollowedLog<Value>;
  readonly #options: LogReaderOptions;
  readonly #pick: (value: Value) => Shown | undefined;
  readonly #stopListening: () => void;
  readonly #begun: Promise<void>;
  /** `shown` null: a gap. Reading continues after `seq`. */
  #buffer: { readonly seq: number; readonly shown: Shown | null; readonly bytes: number }[] = [];
  #bytes = 0;
  /** At the last entry that was buffered, or skipped because the reader did not ask for it. */
  readonly #cursor: LogCursor<Value>;
  /** The last entry returned by `next`; before the first one, where reading began. */
  #returned: number | undefined;
  #live = false;
  #ended = false;
  #wake: (() => void) | null = null;

  /**
   * `pick` returns what the reader sees of an entry; undefined: the reader did not ask for it. `source` is read for this reader
   * alone, so it may leave out entries that the reader did not ask for.
   */
  constructor(
    log: FollowedLog<Value>,
    pick: (value: Value) => Shown | undefined,
    options: LogReaderOptions = {},
    source: LogSource<Value> = log.source,
  ) {
    this.#log = log;
    this.#pick = pick;
    this.#options = options;
    this.#cursor = new LogCursor(options.pace === undefined ? source : paced(source, options.pace));
    this.#stopListening = log.listen((_value, entry) => this.#offer(entry), {
      onClose: () => this.#end(),
      onRestored: ({ resumeAfter }) => this.#goBackTo(resumeAfter),
    });
    this.#begun = this.#begin();
    // `next` throws the error. Without this handler, a rejection before the first `next` would end the process.
    this.#begun.catch(() => {});
    if (options.signal?.aborted) this.#end();
    else options.signal?.addEventListener("abort", this.#end, { once: true });
  }

  get ready(): Promise<void> {
    return this.#begun;
  }

  get position(): number | undefined {
    return this.#returned === undefined || this.#buffer.length > 0 ? this.#returned : this.#cursor.seq;
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
        const before = this.#returned;
        this.#returned = next.seq;
        if (next.shown !== null) return next.shown;
        await this.#reportGap(before);
        continue;
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
      this.#cursor.moveTo(this.#log.position);
      this.#returned = this.#cursor.seq;
      this.#live = true;
      return;
    }
    const { source } = this.#log;
    const mark = after > 0 ? await source.mark(after) : null;
    const { oldest, newest } = await source.range();
    // A number above the newest comes from another storage, or from before a restore.
    const beyond = after > newest;
    // The log has no entry with this number although it keeps older ones: a restore took it back, and its number is not
    // assigned again.
    const takenBack = mark === null && after >= oldest && !source.leavesHoles;
    if (after > 0 && (beyond || takenBack || after + 1 < oldest)) onGap?.({ after, oldest });
    if (mark === null) this.#cursor.moveTo(beyond ? 0 : Math.max(after, oldest - 1));
    else this.#cursor.moveTo(after, mark);
    this.#returned = this.#cursor.seq;
  }

  async #reportGap(after = 0): Promise<void> {
    const { oldest } = await this.#log.source.range();
    this.#options.onGap?.({ after, oldest });
  }

  /** Only for a live reader, which has seen entries that were taken back. For one that is behind, `#cursor.read` checks this. */
  #goBackTo(seq: number): void {
    if (!this.#live) return;
    this.#cursor.moveTo(seq);
    this.#addGap();
  }

  #addGap(): void {
    this.#buffer.push({ seq: this.#cursor.seq, shown: null, bytes: 0 });
    this.#wake?.();
    this.#wake = null;
  }

  #offer(entry: LogEntry<Value>): void {
    if (!this.#live || entry.seq <= this.#cursor.seq) return;
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
    const positionBefore = this.#log.position;
    const page = await this.#cursor.read();
    if (page === null) {
      await this.#cursor.resume();
      return this.#addGap();
    }
    const { entries, more, upTo } = page;
    for (const entry of entries) this.#take(entry, this.#pick(entry.value));
    if (upTo > this.#cursor.seq) this.#cursor.moveTo(upTo);
    // Live again once every entry that listeners have got so far is either in the buffer or deleted.
    const nothingLeft = entries.length === 0 && !more && this.#log.position === positionBefore;
    this.#live = nothingLeft || this.#cursor.seq >= this.#log.position;
    // Yields to the event loop between pages, even if the storage responds synchronously: a reader that is far behind
    // must not block other work.
    await new Promise((resolve) => setImmediate(resolve));
  }

  #take({ seq, bytes, mark }: LogEntry<Value>, shown: Shown | undefined): void {
    this.#cursor.moveTo(seq, mark);
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

function paced<Value>(source: LogSource<Value>, pace: ReadPace): LogSource<Value> {
  return { ...source, read: (after) => pace(() => source.read(after)) };
}
