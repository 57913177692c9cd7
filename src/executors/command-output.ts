import type { Readable } from "node:stream";
import type { Log } from "../model/log.ts";
import { ANSWER_BYTES_MAX, type AnswerText, EXCERPT_BYTES_MAX, excerptOfEnd } from "./answer-text.ts";
import type { ExecutorContext } from "./executor.ts";

/** How many lines of one attempt are logged, and how much of each. */
const LINES_MAX = 1_000;
const LINE_LENGTH_MAX = 2_000;

/** Keeps the beginning of the output. The rest is read and dropped, or else the program would block. */
export function keepBeginning(stream: Readable, holds: ExecutorContext["holds"]): () => AnswerText {
  const chunks: Buffer[] = [];
  let bytes = 0;
  stream.on("data", (chunk: Buffer) => {
    if (bytes <= ANSWER_BYTES_MAX) {
      chunks.push(chunk);
      holds(chunk.byteLength);
    }
    bytes += chunk.byteLength;
  });
  return () => {
    const kept = Buffer.concat(chunks).subarray(0, ANSWER_BYTES_MAX);
    const truncated = bytes > ANSWER_BYTES_MAX;
    // In stream mode the decoder drops a character that the cut went through.
    return { text: new TextDecoder().decode(kept, { stream: truncated }), truncated };
  };
}

/** Logs stderr of a program line by line. The returned function returns its end. */
export function logLines(stream: Readable, log: Log): () => string {
  const lines = new LineLog(log);
  let end = "";
  stream.setEncoding("utf8").on("data", (text: string) => {
    // A character is at least one byte, and white space around the text is trimmed.
    end = (end + text).slice(-2 * EXCERPT_BYTES_MAX);
    lines.add(text);
  });
  return () => {
    lines.end();
    return excerptOfEnd(end.trim());
  };
}

class LineLog {
  readonly #log: Log;
  #line = "";
  #count = 0;

  constructor(log: Log) {
    this.#log = log.child({ stream: "stderr" });
  }

  add(text: string): void {
    const [first = "", ...others] = text.split(/\r?\n/);
    this.#append(first);
    for (const other of others) {
      this.end();
      this.#append(other);
    }
  }

  /** Ends the current line, if there is one. */
  end(): void {
    const isCut = this.#line.length > LINE_LENGTH_MAX;
    const line = isCut ? `${this.#line.slice(0, LINE_LENGTH_MAX)}…` : this.#line.trimEnd();
    this.#line = "";
    if (line === "" || this.#count > LINES_MAX) return;
    this.#count += 1;
    if (this.#count <= LINES_MAX) this.#log.info({}, line);
    else this.#log.warn({}, `wrote more than ${LINES_MAX} lines: the rest is left out`);
  }

  #append(text: string): void {
    this.#line = (this.#line + text).slice(0, LINE_LENGTH_MAX + 1);
  }
}
