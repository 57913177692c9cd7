import type { Clock } from "../model/clock.ts";

/** Response bodies that are read at the same time. */
const OPEN_MAX = 16;
/** Bytes read of a body: enough to read a short one to its end, so that the connection can be reused. */
const BYTES_MAX = 4_096;
/** How long reading a body may take: most receivers have sent all of it with the status. */
const REST_MS = 1_000;

/**
 * Reads and discards response bodies of receivers, in the background and within limits: a connection whose response was read
 * to its end can be reused for the next callback. If that takes too much time or too many bytes, the connection is dropped.
 */
export class ResponseDrain {
  readonly #clock: Pick<Clock, "setTimer">;
  readonly #open = new Set<AbortController>();

  constructor(clock: Pick<Clock, "setTimer">) {
    this.#clock = clock;
  }

  /** Reads a body. Aborting `exchange` drops its connection. */
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
    // A body that breaks off, or cannot be decompressed, does not change the outcome.
    void skim(body).then(close, close);
  }

  /** Drops all bodies that are still being read. */
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
