import type { Clock } from "../model/clock.ts";

/** Answers that are read at once beyond their status. */
const OPEN_MAX = 16;
/** Enough of an answer for a short one to be read to its end, so that the connection can be used again. */
const BYTES_MAX = 4_096;
/** How long the rest of an answer may take: whoever has answered has mostly sent all of it already. */
const REST_MS = 1_000;

/**
 * What receivers say beyond their status, which nobody wants to know. It is read all the same, aside and within limits:
 * a connection whose answer was read to its end serves the next callback. Where that takes too much, it is dropped.
 */
export class ResponseDrain {
  readonly #clock: Pick<Clock, "setTimer">;
  readonly #open = new Set<AbortController>();

  constructor(clock: Pick<Clock, "setTimer">) {
    this.#clock = clock;
  }

  /** Reads a body whose connection ends with this exchange. */
  read(body: AsyncIterable<Uint8Array>, exchange: AbortController): void {
    if (this.#open.size >= OPEN_MAX) {
      exchange.abort();
      return;
    }
    this.#open.add(exchange);
    const timer = this.#clock.setTimer(REST_MS, () => exchange.abort());
    const close = () => {
      timer.cancel();
      this.#open.delete(exchange);
    };
    // An answer that breaks off, or cannot be unpacked, was still an answer.
    void skim(body).then(close, close);
  }

  /** Drops all that are still being read. */
  drop(): void {
    for (const exchange of this.#open) exchange.abort();
  }
}

async function skim(body: AsyncIterable<Uint8Array>): Promise<void> {
  let bytes = 0;
  for await (const chunk of body) {
    bytes += chunk.byteLength;
    // Leaving the loop drops the connection.
    if (bytes > BYTES_MAX) return;
  }
}
