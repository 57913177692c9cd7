import type { ServerResponse } from "node:http";
import type { Clock, Timer } from "../model/clock.ts";
import { whenClosed } from "./when-closed.ts";

/** A reader that takes nothing for this long is gone, or as good as gone. */
const UNREAD_MS = 30_000;
/** The same for one for which more has piled up by then than is kept: it costs more than one that has little to read. */
const PILED_UP_MS = 5_000;
/** Written at once, so that a slow reader of something large is seen to take it. */
const SLICE_BYTES = 65_536;

export interface ResponseStreamOptions {
  readonly clock: Clock;
  /** Told when a reader is dropped. */
  readonly onDropped: () => void;
  /** Told when the connection is closed, for whatever reason: comes once, in any case. */
  readonly onClosed: () => void;
}

/**
 * One long answer, at the pace at which it is read. Nothing is written before there is room for it, and a reader that takes
 * nothing any more is dropped.
 */
export class ResponseStream {
  readonly #response: ServerResponse;
  readonly #options: ResponseStreamOptions;
  readonly #ending = new AbortController();
  #stalled: Timer | null = null;
  /** Whether it stalls while more waits than is kept. */
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

  /** Fires when nothing more is to be told. */
  get stopped(): AbortSignal {
    return this.#ending.signal;
  }

  /** Whether the connection is closed. */
  get gone(): boolean {
    return this.#gone;
  }

  /** Whoever writes to it ends it once they have noticed. */
  stop(): void {
    this.#ending.abort();
  }

  begin(headers: Readonly<Record<string, string>>): void {
    this.#response.writeHead(200, headers).flushHeaders();
  }

  /** Resolves once there is room for more, or nobody is left to read it. */
  async write(bytes: Buffer): Promise<void> {
    for (let at = 0; at < bytes.length && !this.#gone; at += SLICE_BYTES) {
      if (!this.#response.write(bytes.subarray(at, at + SLICE_BYTES))) await this.#drained();
    }
  }

  /** Whoever does not read what is there already needs no sign of life. */
  writeIfRead(text: string): void {
    if (!this.#response.writableNeedDrain && !this.#gone) this.#response.write(text);
  }

  /** More waits to be written than is kept. */
  pileUp(): void {
    if (this.#stalled === null || this.#piledUp) return;
    this.#piledUp = true;
    this.#stalls(PILED_UP_MS);
  }

  /** What was written can still be read. */
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
      // An end would wait until everything has been read.
      this.#response.destroy();
    });
  }

  #moves(): void {
    this.#stalled?.cancel();
    this.#stalled = null;
    this.#piledUp = false;
  }
}
