import { TASK_LOG_MAX, type TaskLogLevel } from "../../model/task-log.ts";
import { LOG_PIECE_MAX, type LoggedLine, type LogPiece } from "../../storage/storage.ts";

/** The bytes that a line counts for besides its text. */
const LINE_BYTES = 64;

interface WaitingLine extends LoggedLine {
  readonly bytes: number;
}

/** The lines of one attempt that wait to be written. Beyond the number that is stored per attempt, the oldest are dropped. */
export class AttemptLines {
  readonly taskSeq: number;
  readonly attempt: number;
  #waiting: WaitingLine[] = [];
  #bytes = 0;
  #lastN = 0;
  #written = 0;

  /** `startN`: the number before that of the first line. */
  constructor({ taskSeq, attempt, startN = 0 }: { taskSeq: number; attempt: number; startN?: number }) {
    this.taskSeq = taskSeq;
    this.attempt = attempt;
    this.#lastN = startN;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get size(): number {
    return this.#waiting.length;
  }

  /** Whether more lines were written than are stored: further lines only replace older ones. */
  get isLong(): boolean {
    return this.#written > TASK_LOG_MAX.lines;
  }

  add(line: { readonly at: number; readonly level: TaskLogLevel; readonly text: string }): void {
    const bytes = Buffer.byteLength(line.text) + LINE_BYTES;
    this.#waiting.push({ ...line, bytes });
    this.#bytes += bytes;
    this.#lastN += 1;
    while (this.#waiting.length > TASK_LOG_MAX.lines || this.#bytes > TASK_LOG_MAX.bytes) this.dropOldest();
  }

  dropOldest(): void {
    this.#bytes -= this.#waiting.shift()?.bytes ?? 0;
  }

  /** Returns the oldest waiting lines up to this many bytes, in pieces. They stay until `written` is called. */
  pieces(bytesMax: number): LogPiece[] {
    const pieces: LogPiece[] = [];
    const firstN = this.#lastN - this.#waiting.length + 1;
    for (let [start, taken] = [0, 0]; start < this.#waiting.length && taken < bytesMax; ) {
      const { end, bytes } = this.#pieceFrom(start);
      const { taskSeq, attempt } = this;
      const lines = this.#waiting.slice(start, end).map(({ at, level, text }) => ({ at, level, text }));
      pieces.push({ taskSeq, attempt, lastN: firstN + end - 1, bytes, lines });
      start = end;
      taken += bytes;
    }
    return pieces;
  }

  #pieceFrom(start: number): { end: number; bytes: number } {
    let [end, bytes] = [start, 0];
    for (const line of this.#waiting.slice(start, start + LOG_PIECE_MAX.lines)) {
      if (end > start && bytes + line.bytes > LOG_PIECE_MAX.bytes) break;
      bytes += line.bytes;
      end += 1;
    }
    return { end, bytes };
  }

  written(upTo: number): void {
    while (this.#waiting.length > 0 && this.#lastN - this.#waiting.length < upTo) {
      this.dropOldest();
      this.#written += 1;
    }
  }
}
