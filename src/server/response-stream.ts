import type { ServerResponse } from "node:http";
import type { Clock, Timer } from "../model/clock.ts";
import { whenClosed } from "./when-closed.ts";

/** A reader that takes nothing for this long counts as gone. */
const UNREAD_MS = 30_000;
/** The same once its buffer is full too: such a reader costs more than one that has little to read. */
const PILED_UP_MS = 5_000;
/** The size of one write, so that progress of a slow reader shows even within something large. */
const SLICE_BYTES = 65_536;

export interface ResponseStreamOptions {
  readonly clock: Clock;
  /** Called when a reader is dropped. */
  readonly onDropped: () => void;
  /** Called exactly once, when the connection is closed for any reason. */
  readonly onClosed: () => void;
}

/**
 * One long response, written at the pace at which it is read. Writes wait until there is room, and a reader that takes nothing
 * any more is dropped.
 */
export class ResponseStream {
  readonly #response: ServerResponse;
  readonly #options: ResponseStreamOptions;
  readonly #ending = new AbortController();
  #stalled: Timer | null = null;
  /** Whether it stalls with a full buffer. */
  #piledUp = false;
  #gone = false;

  constructor(response: ServerResponse, options: ResponseStreamOptions) {
    this.#response = response;
    this.#options = options;
    whenClosed(response, () => {
      this.#gone = true;
      this.#moves();
      this.stop();
      options.onClosed();
    });
  }

  /** Fires when nothing more is to be written. */
  get stopped(): AbortSignal {
    return this.#ending.signal;
  }

  /** Whether the connection is closed. */
  get gone(): boolean {
    return this.#gone;
  }

  /** Asks the writer to end the stream. The writer does so when it sees `stopped`. */
  stop(): void {
    this.#ending.abort();
  }

  begin(headers: Readonly<Record<string, string>>): void {
    this.#response.writeHead(200, headers).flushHeaders();
  }

  /** Resolves once there is room for more, or the reader is gone. */
  async write(bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length && !this.#gone; at += SLICE_BYTES) {
      if (!this.#response.write(bytes.subarray(at, at + SLICE_BYTES))) await this.#drained();
    }
  }

  /** For heartbeats: a reader that has not read the previous bytes needs none. */
  writeIfRead(text: string): void {
    if (!this.#response.writableNeedDrain && !this.#gone) this.#response.write(text);
  }

  /** The buffer of this reader is full. If it also takes nothing, the shorter time limit applies. */
  pileUp(): void {
    if (this.#stalled === null || this.#piledUp) return;
    this.#piledUp = true;
    this.#stalls(PILED_UP_MS);
  }

  /** The reader can still read what was written. */
  end(): void {
    if (this.#gone) return;
    this.#response.end();
    this.#stalls(UNREAD_MS);
  }

  #drained(): Promise<void> {
    if (this.#gone) return Promise.resolve();
    this.#stalls(UNREAD_MS);
    return new Promise((resolve) => {
      const done = () => {
        this.#moves();
        this.#response.off("drain", done).off("close", done);
        resolve();
      };
      this.#response.on("drain", done).on("close", done);
    });
  }

  #stalls(limitMs: number): void {
    this.#stalled?.cancel();
    this.#stalled = this.#options.clock.setTimer(limitMs, () => {
      this.#options.onDropped();
      // `end` would wait until everything has been read.
      this.#response.destroy();
    });
  }

  #moves(): void {
    this.#stalled?.cancel();
    this.#stalled = null;
    this.#piledUp = false;
  }
}
