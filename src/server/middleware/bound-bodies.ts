import { Transform } from "node:stream";
import type { FastifyInstance, FastifyRequest, RequestPayload } from "fastify";
import { RotaError } from "../../model/errors.ts";
import type { Caller } from "../../model/role.ts";
import { HELD_BYTES, HeldBytes, type HeldBytesOptions } from "../held-bytes.ts";
import { BODY_BYTES_MAX } from "./errors.ts";

/** Smaller bodies are not counted: they usually arrive together with their head. */
const SMALL_BYTES = 16_384;
/** How much of a chunked body is counted ahead each time. */
const STEP_BYTES = 65_536;
/** A piece of a chunked body counts as so many bytes at least: each takes time and memory, even with a single byte in it. */
const PIECE_BYTES_MIN = 64;

const ARRIVING = {
  what: "the bodies that are being received",
  advice: "send fewer large bodies at once, or faster",
} as const;

export interface BodiesOptions {
  readonly hasSecondTenant: () => boolean;
  /** For tests: how many bytes of bodies may be on their way. */
  readonly bodyBytes?: HeldBytesOptions | undefined;
}

/**
 * Keeps bodies that arrive slowly from filling the memory. Those with a length are counted when they begin, chunked ones as they
 * arrive.
 */
export function boundBodies(
  app: FastifyInstance,
  { hasSecondTenant, bodyBytes = HELD_BYTES }: BodiesOptions,
): void {
  const held = new HeldBytes({ ...bodyBytes, ...ARRIVING }, hasSecondTenant);

  // Not asynchronous: every request passes here.
  app.addHook("preParsing", (request, _reply, payload, done) => {
    const { headers } = request.raw;
    const bytes = Number(headers["content-length"] ?? 0);
    try {
      if (headers["transfer-encoding"] !== undefined) done(null, countPieces(request, payload, held));
      else {
        const isCounted = bytes > SMALL_BYTES && bytes <= BODY_BYTES_MAX;
        if (isCounted) request.raw.once("close", held.add(ownerOf(request), bytes));
        done(null, payload);
      }
    } catch (error) {
      done(error as RotaError);
    }
  });
}

/** Passes the pieces of a chunked body on, and charges them as they arrive. Otherwise the cost would be known only at the end. */
function countPieces(request: FastifyRequest, body: RequestPayload, held: HeldBytes): Transform {
  let counted = 0;
  let reserved = SMALL_BYTES;
  const reservations: (() => void)[] = [];
  request.raw.once("close", () => {
    for (const free of reservations) free();
  });
  const pieces = new Transform({
    transform(piece: Buffer, _encoding, done) {
      counted += Math.max(piece.length, PIECE_BYTES_MIN);
      if (counted <= reserved) return done(null, piece);
      try {
        if (counted > BODY_BYTES_MAX) throw tooLarge();
        request.charge?.pay({ bytesIn: counted });
        reservations.push(held.add(ownerOf(request), STEP_BYTES));
        reserved += STEP_BYTES;
        done(null, piece);
      } catch (error) {
        done(error as RotaError);
      }
    },
    flush(done) {
      try {
        request.charge?.pay({ bytesIn: counted });
        done();
      } catch (error) {
        done(error as RotaError);
      }
    },
  });
  body.on("error", (error) => pieces.destroy(error));
  return body.pipe(pieces);
}

function ownerOf({ callerContext }: FastifyRequest): Caller | null {
  return callerContext?.caller ?? null;
}

function tooLarge(): RotaError {
  return new RotaError(
    "body_too_large",
    `the body is larger than ${BODY_BYTES_MAX} bytes, where each chunk counts as ${PIECE_BYTES_MIN} bytes at least: store large data elsewhere, and send larger chunks or a \`content-length\``,
  );
}
