import type { Socket } from "node:net";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import type { Clock } from "../../model/clock.ts";
import { HELD_BYTES, HeldBytes, type HeldBytesOptions } from "../held-bytes.ts";

/** If a caller reads nothing of a response for this long, it does not wait for it any more. */
export const UNREAD_MS = 30_000;
/** The whole response may take this many times as long. This stops callers that keep a connection busy without reading. */
const WHOLE = 10;
/** Smaller responses fit into the buffers of the operating system. */
const SMALL_BYTES = 65_536;

const UNREAD = {
  what: "the unread responses",
  advice: "read them first, or request less at once",
} as const;

const READS = ["GET", "HEAD"];

export interface UnreadAnswersOptions {
  readonly unreadMs: number;
  readonly clock: Clock;
  readonly unreadBytes?: HeldBytesOptions;
  readonly hasSecondTenant: () => boolean;
}

/**
 * Keeps unread responses from filling the memory. Their bytes are bounded, per key and in all, and the connection of a caller
 * that does not read is closed. Streams are written only as they are read, so they are not counted.
 */
export function boundUnreadAnswers(app: FastifyInstance, options: UnreadAnswersOptions): void {
  const { unreadMs, clock, unreadBytes = HELD_BYTES, hasSecondTenant } = options;
  const unread = new HeldBytes({ ...unreadBytes, ...UNREAD }, hasSecondTenant);
  const connections = new Connections();

  // Before any work for a caller that does not read. Responses of open routes are small, and have no caller.
  app.addHook("onRequest", ({ callerContext }, _reply, done) => {
    if (callerContext !== undefined) unread.check(callerContext.caller);
    done();
  });

  app.addHook("onSend", (request, reply, payload, done) => {
    if (typeof payload === "string" || Buffer.isBuffer(payload)) bound(request, reply, payload);
    done();
  });

  function bound(request: FastifyRequest, reply: FastifyReply, payload: string | Buffer): void {
    const bytes = Buffer.byteLength(payload);
    if (bytes < SMALL_BYTES) return;
    const read = count(request, reply, bytes);
    if (read === null) return;
    const { raw } = reply;
    // Once the response has been read, Node sets its own idle timeout again.
    raw.setTimeout(unreadMs);
    const timer = clock.setTimer(unreadMs * WHOLE, () => raw.destroy());
    connections.whenOver(request.raw.socket, raw, () => {
      timer.cancel();
      read();
    });
  }

  /** Null: there is no room. A change that is already done cannot be refused, so the connection is closed instead. */
  function count({ callerContext, method }: FastifyRequest, { raw }: FastifyReply, bytes: number) {
    try {
      return unread.add(callerContext?.caller ?? null, bytes);
    } catch (error) {
      if (READS.includes(method)) throw error;
      raw.destroy();
      return null;
    }
  }
}

/** Reports when a response has been read, or never will be. */
class Connections {
  readonly #over = new WeakMap<Socket, Set<() => void>>();

  whenOver(socket: Socket, answer: FastifyReply["raw"], callback: () => void): void {
    const waiting = this.#waitingOn(socket);
    const over = () => {
      if (waiting.delete(over)) callback();
    };
    waiting.add(over);
    answer.once("close", over);
    // The connection may have been closed while the response was made.
    if (socket.destroyed) over();
  }

  /** A response that is queued behind others on its connection gets no `close` when the connection closes. */
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
