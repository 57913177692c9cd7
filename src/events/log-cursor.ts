import type { LogMark } from "../storage/storage.ts";
import type { LogPage, LogSource } from "./log-source.ts";

/**
 * How far a log has been read, and which entry was last. A database that is restored to an earlier state loses the newest
 * entries and may assign their numbers again, perhaps so many that the numbers alone do not show the restore. So every read
 * compares the last entry with the one that the database now has under its number.
 */
export class LogCursor<Value> {
  readonly #source: LogSource<Value>;
  #seq = 0;
  /** Undefined: not known yet; null: the entry was not found, it may have been deleted. */
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

  /** The next page; null: the database was restored, and the caller must call `resume` before the next read. */
  async read(): Promise<LogPage<Value> | null> {
    const page = await this.#source.read(this.#seq);
    if (await this.#isOther(page)) return null;
    this.#mark ??= page.mark;
    return page;
  }

  /** Whether the database was restored since the last read. Does not read further entries. */
  async isTakenBack(): Promise<boolean> {
    return this.#isOther({ mark: await this.#source.mark(this.#seq), entries: [] });
  }

  /**
   * Moves to the last entry that is not newer than the last one read: the reader has not seen the entries after it. If the time
   * of the last one read is unknown, moves to the newest entry.
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
