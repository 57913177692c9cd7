import { cleanText } from "../../attempts/attempt-error.ts";
import { TASK_LOG_MAX, type TaskLogLevel } from "../../model/task-log.ts";
import type { TaskRecord } from "../../model/task-record.ts";
import { Service, type ServiceOptions } from "../../services/service.ts";
import type { LogPiece, Storage } from "../../storage/storage.ts";
import { AttemptLines } from "./attempt-lines.ts";

/** How long lines wait, to be written together. A crash of the process loses at most this much. */
const GATHER_MS = 500;
/** The lines of an attempt that has ended wait only this long: its caller may read them next. */
const ENDED_GATHER_MS = 20;
/** An attempt that has logged more than is kept waits longer: a loop that logs must not keep the database busy. */
const LONG_GATHER_MS = 5_000;
/** The most bytes in one write, of all attempts and of one, so that an attempt with many lines does not delay others. */
const WRITE_BYTES = 1_048_576;
const WRITE_BYTES_EACH = 65_536;
/** The most bytes that may wait in all. Beyond it, an attempt that logs loses its own oldest lines. */
const WAITING_BYTES_MAX = 16 * 1_048_576;
const IDLE_MS = 60_000;

export interface LogKeeperOptions extends ServiceOptions {
  readonly storage: Storage;
  readonly storageNow: () => number;
}

/** An attempt whose lines are stored. */
export interface LoggingAttempt {
  readonly record: Pick<TaskRecord, "seq">;
  readonly number: number;
  /** The number before that of its first line here; left out: 0. */
  readonly startN?: number;
}

interface Taken {
  readonly lines: AttemptLines;
  readonly pieces: readonly LogPiece[];
  readonly upTo: number;
}

interface Waiting {
  /** By the monotonic clock: not to be written before. */
  dueAt: number;
}

/** Stores the log lines of executors, many in one write. A task that logs nothing costs nothing. */
export class LogKeeper extends Service<LogKeeperOptions> {
  readonly name = "log keeper";
  readonly #linesOf = new WeakMap<LoggingAttempt, AttemptLines>();
  /** Attempts with lines to write, the longest waiting first. */
  readonly #waiting = new Map<AttemptLines, Waiting>();
  #bytes = 0;
  /** Lines being written. If the outcome is unknown, the same pieces are written again, so that no line is stored twice. */
  #taken: readonly Taken[] = [];

  /** `at`: by the storage's clock; left out: now. */
  add(attempt: LoggingAttempt, level: TaskLogLevel, text: string, at = this.options.storageNow()): void {
    const lines = this.#of(attempt);
    const before = lines.bytes;
    lines.add({ at, level, text: cleanText(text, TASK_LOG_MAX.lineBytes) });
    this.#bytes += lines.bytes - before;
    while (this.#bytes > WAITING_BYTES_MAX && lines.size > 0) this.#dropOldest(lines);
    if (this.#waiting.has(lines)) return;
    const delayMs = lines.isLong ? LONG_GATHER_MS : GATHER_MS;
    this.#waiting.set(lines, { dueAt: this.clock.monotonic() + delayMs });
    this.wake(delayMs);
  }

  /** The attempt is over: what it has logged is written soon. */
  ended(attempt: LoggingAttempt): void {
    const lines = this.#linesOf.get(attempt);
    const waiting = lines && this.#waiting.get(lines);
    if (waiting === undefined || lines?.isLong) return;
    waiting.dueAt = Math.min(waiting.dueAt, this.clock.monotonic() + ENDED_GATHER_MS);
    this.wake(ENDED_GATHER_MS);
  }

  async tick(): Promise<number> {
    await this.#write(this.clock.monotonic());
    return this.#nextMs();
  }

  /** Writes all waiting lines before the process ends. Lines that cannot be written now are lost. */
  async close(): Promise<void> {
    await this.stop();
    while (this.#waiting.size > 0) {
      try {
        await this.#write(Number.POSITIVE_INFINITY);
      } catch (error) {
        this.log.warn({ error }, "could not store the last log lines of executors");
        return;
      }
    }
  }

  #of(attempt: LoggingAttempt): AttemptLines {
    const known = this.#linesOf.get(attempt);
    if (known !== undefined) return known;
    const lines = new AttemptLines({
      taskSeq: attempt.record.seq,
      attempt: attempt.number,
      ...(attempt.startN === undefined ? {} : { startN: attempt.startN }),
    });
    this.#linesOf.set(attempt, lines);
    return lines;
  }

  #dropOldest(lines: AttemptLines): void {
    const before = lines.bytes;
    lines.dropOldest();
    this.#bytes += lines.bytes - before;
  }

  async #write(now: number): Promise<void> {
    if (this.#taken.length === 0) this.#taken = this.#take(now);
    if (this.#taken.length === 0) return;
    await this.options.storage.logs.append({ pieces: this.#taken.flatMap(({ pieces }) => pieces) });
    for (const { lines, upTo } of this.#taken) this.#written(lines, upTo);
    this.#taken = [];
  }

  #take(now: number): Taken[] {
    const taken: Taken[] = [];
    let bytes = 0;
    for (const [lines, { dueAt }] of this.#waiting) {
      if (dueAt > now) continue;
      if (bytes >= WRITE_BYTES) break;
      const pieces = lines.pieces(WRITE_BYTES_EACH);
      bytes += pieces.reduce((sum, piece) => sum + piece.bytes, 0);
      taken.push({ lines, pieces, upTo: pieces.at(-1)?.lastN ?? 0 });
    }
    return taken;
  }

  /** An attempt with more lines to write goes to the end of the queue. */
  #written(lines: AttemptLines, upTo: number): void {
    const before = lines.bytes;
    lines.written(upTo);
    this.#bytes += lines.bytes - before;
    this.#waiting.delete(lines);
    if (lines.size === 0) return;
    const delayMs = lines.isLong ? LONG_GATHER_MS : 0;
    this.#waiting.set(lines, { dueAt: this.clock.monotonic() + delayMs });
  }

  #nextMs(): number {
    if (this.#waiting.size === 0) return IDLE_MS;
    const dueAt = Math.min(...[...this.#waiting.values()].map((waiting) => waiting.dueAt));
    return Math.max(dueAt - this.clock.monotonic(), 1);
  }
}
