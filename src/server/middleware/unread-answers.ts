import type { FastifyInstance } from "fastify";
import type { Clock } from "../../model/clock.ts";

/** An answer of which nothing is read for this long is one that nobody waits for. */
export const UNREAD_MS = 30_000;
/** So many times as long may all of it take, for whoever keeps a connection busy without reading. */
const WHOLE = 10;
/** What is smaller than this is the operating system's to keep. */
const SMALL_BYTES = 65_536;

/**
 * Cuts the connection of whoever asks for something large and does not read it: all of it would be kept in memory meanwhile.
 * Streams, which are written as they are read, look after that themselves.
 */
export function dropUnreadAnswers(
  app: FastifyInstance,
  { unreadMs, clock }: { readonly unreadMs: number; readonly clock: Clock },
): void {
  app.addHook("onSend", async (_request, { raw }, payload) => {
    if ((typeof payload !== "string" && !Buffer.isBuffer(payload)) || payload.length < SMALL_BYTES) return;
    // Once it has been read, Node gives the connection the time that it may be idle.
    raw.setTimeout(unreadMs);
    const timer = clock.setTimer(unreadMs * WHOLE, () => raw.destroy());
    raw.once("close", () => timer.cancel());
  });
}
