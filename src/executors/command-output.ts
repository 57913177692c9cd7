import type { Readable } from "node:stream";
import type { Log } from "../model/log.ts";
import { ANSWER_BYTES_MAX, type AnswerText, EXCERPT_BYTES_MAX, excerptOfEnd } from "./answer-text.ts";
import type { ExecutorContext } from "./executor.ts";

/** How many lines of one attempt go to the log, and how much of each. */
const LINES_MAX = 1_000;
const LINE_LENGTH_MAX = 2_000;

/** Keeps the beginning of what a program writes. The rest is read, too, or the program would wait for a reader. */
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
    // As a stream that goes on, a character that the cut went through is left out.
    return { text: new TextDecoder().decode(kept, { stream: truncated }), truncated };
  };
}

/** Writes what a program complains of to the log, line by line, and answers the end of it. */
export function logLines(stream: Readable, log: Log): () => string {
  const lines = new LineLog(log);
  let end = "";
  stream.setEncoding("utf8").on("data", (text: string) => {
    // A character is a byte at least, and white space around it is left out.
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

  /** Ends the line, if there is one. */
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
