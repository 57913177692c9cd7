import { isUtf8 } from "node:buffer";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { RotaError } from "../../model/errors.ts";
import { JSON_DEPTH_MAX } from "../../model/input/task-input.ts";
import { hugeNumberIn } from "../../model/text/huge-numbers.ts";
import { parseOwnJson } from "../../model/text/own-json.ts";
import { TurnBudget } from "../../services/turn-budget.ts";

/** Of the path to a wrong value, this much is in the error. */
const PATH_SHOWN_MAX = 100;
/** A body of this size takes some milliseconds to parse. */
const LARGE_BYTES = 65_536;
/** How much of large bodies is parsed in one turn of the event loop. A mebibyte takes up to 50 ms. */
const PARSED_PER_TURN = { pieces: 4, bytes: 262_144, rest: 2 } as const;

/**
 * Parses bodies as JSON and nothing else. A key like `__proto__` becomes an ordinary key, as `JSON.parse` makes it, so free-form
 * fields come back as they were sent.
 */
export function acceptJsonBodies(app: FastifyInstance): void {
  const turns = new TurnBudget<string | null>(PARSED_PER_TURN);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    "application/json",
    { parseAs: "buffer" },
    (request: FastifyRequest, body: Buffer, done: (error: Error | null, body?: unknown) => void) => {
      // Not asynchronous for small bodies: every request with a body passes here. Fastify catches what this throws.
      if (body.byteLength < LARGE_BYTES) done(null, parseJson(body));
      else parseInTurns(request, body).then((value) => done(null, value), done);
    },
  );

  async function parseInTurns({ callerContext }: FastifyRequest, body: Buffer): Promise<unknown> {
    const owner = callerContext?.caller.tenant ?? null;
    if (turns.isOver) await turns.next(owner);
    turns.used(body.byteLength);
    const parsed = parseJson(body);
    // The handler checks and serializes it: that is as much work again, in another turn of the event loop.
    await turns.next(owner);
    turns.used(body.byteLength);
    return parsed;
  }
}

/** Undefined for an empty body, which many clients send with `content-type: application/json` all the same. */
function parseJson(body: Buffer): unknown {
  if (body.byteLength === 0) return undefined;
  if (!isUtf8(body)) throw new RotaError("invalid_json", "the body is not UTF-8 text");
  const text = body.toString().replace(/^\ufeff/, "");
  const value = parse(text);
  const huge = hugeNumberIn(text, value);
  if (huge === null) return value;
  throw new RotaError(
    "invalid_json",
    `\`${huge.slice(0, PATH_SHOWN_MAX)}\` is too large for a number: write it as text, or at most 1.7e308`,
  );
}

function parse(text: string): unknown {
  try {
    return parseOwnJson(text, JSON_DEPTH_MAX);
  } catch (error) {
    throw new RotaError("invalid_json", `the body is not JSON: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
