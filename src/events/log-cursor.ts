import type { LogMark } from "../storage/storage.ts";
import type { LogPage, LogSource } from "./followed-log.ts";

/**
 * How far a log has been read, and what stood there. A database that is restored to an earlier state forgets the newest
 * entries and hands their numbers out again, perhaps so many of them that the numbers alone look as if nothing had
 * happened. So every read compares the entry that was read last with what the database now has under its number.
 */
export class LogCursor<Value> {
  readonly #source: LogSource<Value>;
  #seq = 0;
  /** Undefined: not known yet; null: there was no such entry when it was looked for, it may have been deleted. */
  #mark: LogMark | null | undefined;

  constructor(source: LogSource<Value>) {
    this.#source = source;
  }

  /** Everything up to this number has been read. */
  get seq(): number {
    return this.#seq;
  }

  moveTo(seq: number, mark?: LogMark | null): void {
    if (seq !== this.#seq || mark !== undefined) this.#mark = mark;
    this.#seq = seq;
  }

  /** The next page; null: the log is no longer the one that was read so far, and `resume` says where to go on. */
  async read(): Promise<LogPage<Value> | null> {
    const page = await this.#source.read(this.#seq);
    if (await this.#isOther(page)) return null;
    this.#mark ??= page.mark;
    return page;
  }

  /** Whether the log is no longer the one that was read so far, without reading on. */
  async isTakenBack(): Promise<boolean> {
    return this.#isOther({ mark: await this.#source.mark(this.#seq), entries: [] });
  }

  /**
   * Goes to the last entry that was there before the restore: whatever was written later, the reader has not seen. Where
   * nothing is known of the time, it goes on from now.
   */
  async resume(): Promise<void> {
    const seq = this.#mark
      ? await this.#source.lastUntil(this.#mark.at)
      : (await this.#source.range()).newest;
    this.#seq = seq;
    this.#mark = undefined;
  }

  async #isOther({ mark, entries }: Pick<LogPage<Value>, "mark" | "entries">): Promise<boolean> {
    const known = this.#mark ?? null;
    if (mark !== null) return known !== null && (mark.type !== known.type || mark.at !== known.at);
    if (this.#seq === 0 || (known === null && entries.length > 0)) return false;
    const { oldest, newest } = await this.#source.range();
    const wasDeleted = this.#seq < oldest || this.#source.leavesHoles;
    return newest < this.#seq || (known !== null && !wasDeleted);
  }
}
