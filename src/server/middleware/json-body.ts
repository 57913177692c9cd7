import { isUtf8 } from "node:buffer";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { RotaError } from "../../model/errors.ts";
import { JSON_DEPTH_MAX } from "../../model/input/task-input.ts";
import { hugeNumberIn } from "../../model/text/huge-numbers.ts";
import { parseOwnJson } from "../../model/text/own-json.ts";
import type { LargeJson } from "../large-json.ts";

/** Of the path to a wrong value, or of a wrong header, this much is in the error. */
const SHOWN_MAX = 100;

/**
 * Parses bodies as JSON and nothing else. A key like `__proto__` becomes an ordinary key, as `JSON.parse` makes it, so free-form
 * fields come back as they were sent.
 */
export function acceptJsonBodies(app: FastifyInstance, large: LargeJson): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    "application/json",
    { parseAs: "buffer" },
    (request: FastifyRequest, body: Buffer, done: (error: Error | null, body?: unknown) => void) => {
      refuseEncoded(request.headers["content-encoding"]);
      const tenant = request.callerContext?.caller.tenant ?? null;
      const turn = large.turnFor(tenant, body.byteLength);
      // Not asynchronous for small bodies: every request with a body passes here. Fastify catches what this throws.
      if (turn === undefined) done(null, parseJson(body));
      else parseInTurns(tenant, { body, turn }).then((value) => done(null, value), done);
    },
  );

  async function parseInTurns(
    tenant: string | null,
    { body, turn }: { readonly body: Buffer; readonly turn: Promise<void> },
  ): Promise<unknown> {
    await turn;
    const parsed = parseJson(body);
    // The handler checks and serializes it: that is as much work again, in another turn of the event loop.
    await large.turnFor(tenant, body.byteLength);
    return parsed;
  }
}

/** An encoded body would otherwise be refused as bytes that are no text, which does not say what to change. */
function refuseEncoded(encoding: string | undefined): void {
  if (encoding === undefined || encoding === "" || encoding.toLowerCase() === "identity") return;
  throw new RotaError(
    "invalid_json",
    `the body is encoded (\`content-encoding: ${encoding.slice(0, SHOWN_MAX)}\`): send it without an encoding`,
  );
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
    `\`${huge.slice(0, SHOWN_MAX)}\` is too large for a number: write it as text, or at most 1.7e308`,
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
