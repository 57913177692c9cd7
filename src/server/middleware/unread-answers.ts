import type { Socket } from "node:net";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Clock } from "../../model/clock.ts";
import { UNREAD_BYTES, UnreadBytes, type UnreadBytesOptions } from "../unread-bytes.ts";

/** An answer of which nothing is read for this long is one that nobody waits for. */
export const UNREAD_MS = 30_000;
/** So many times as long may all of it take, for whoever keeps a connection busy without reading. */
const WHOLE = 10;
/** What is smaller than this is the operating system's to keep. */
const SMALL_BYTES = 65_536;

const READS = ["GET", "HEAD"];

export interface UnreadAnswersOptions {
  readonly unreadMs: number;
  readonly clock: Clock;
  readonly unreadBytes?: UnreadBytesOptions;
}

/**
 * Keeps answers that nobody reads from filling the memory: there are only so many at once, of one key and of all, and the
 * connection of whoever does not read is cut. Streams, which are written as they are read, look after that themselves.
 */
export function boundUnreadAnswers(app: FastifyInstance, options: UnreadAnswersOptions): void {
  const { unreadMs, clock, unreadBytes = UNREAD_BYTES } = options;
  const unread = new UnreadBytes(unreadBytes);
  const connections = new Connections();

  // Before anything is read for whoever will not read it. What is open to everybody is small, and has no visitor.
  app.addHook("onRequest", async ({ visitor }) => {
    if (visitor !== undefined) unread.check(visitor.caller.keyId);
  });

  app.addHook("onSend", async (request, reply, payload) => {
    if (typeof payload !== "string" && !Buffer.isBuffer(payload)) return;
    const bytes = Buffer.byteLength(payload);
    if (bytes < SMALL_BYTES) return;
    const read = count(request, reply, bytes);
    if (read === null) return;
    const { raw } = reply;
    // Once it has been read, Node gives the connection the time that it may be idle.
    raw.setTimeout(unreadMs);
    const timer = clock.setTimer(unreadMs * WHOLE, () => raw.destroy());
    connections.whenOver(request.raw.socket, raw, () => {
      timer.cancel();
      read();
    });
  });

  /** Null: there is no room, and the connection is cut, since what was done cannot be refused any more. */
  function count({ visitor, method }: FastifyRequest, { raw }: FastifyReply, bytes: number) {
    try {
      return unread.add(visitor?.caller.keyId ?? null, bytes);
    } catch (error) {
      if (READS.includes(method)) throw error;
      raw.destroy();
      return null;
    }
  }
}

/** Knows when an answer has been read, or never will be. */
class Connections {
  readonly #over = new WeakMap<Socket, Set<() => void>>();

  whenOver(socket: Socket, answer: FastifyReply["raw"], tell: () => void): void {
    const waiting = this.#waitingOn(socket);
    const over = () => {
      if (waiting.delete(over)) tell();
    };
    waiting.add(over);
    answer.once("close", over);
    // The connection may have been closed while the answer was made.
    if (socket.destroyed) over();
  }

  /** An answer that stands behind others on its connection is not told when that is closed. */
  #waitingOn(socket: Socket): Set<() => void> {
    const known = this.#over.get(socket);
    if (known !== undefined) return known;
    const waiting = new Set<() => void>();
    this.#over.set(socket, waiting);
    socket.once("close", () => {
      for (const over of waiting) over();
    });
    return waiting;
  }
}
