import { isUtf8 } from "node:buffer";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { RotaError } from "../../model/errors.ts";
import { chargeBody } from "./charge-requests.ts";

/**
 * Reads bodies as JSON and as nothing else. A key like `__proto__` becomes a key like any other: `JSON.parse` makes it
 * so, and what is free-form comes back as it was sent.
 */
export function acceptJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser(
    "application/json",
    { parseAs: "buffer" },
    async (request: FastifyRequest, body: Buffer) => {
      chargeBody(request, body.byteLength);
      return parseJson(body);
    },
  );
}

/** Undefined for an empty body, which many clients send with `content-type: application/json` all the same. */
function parseJson(body: Buffer): unknown {
  if (body.byteLength === 0) return undefined;
  if (!isUtf8(body)) throw new RotaError("invalid_json", "the body is not UTF-8 text");
  try {
    return JSON.parse(body.toString().replace(/^\ufeff/, ""));
  } catch (error) {
    throw new RotaError("invalid_json", `the body is not JSON: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
