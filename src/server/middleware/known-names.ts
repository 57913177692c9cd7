import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { RotaError } from "../../model/errors.ts";
import { codeList, invalidField, isObject, preview } from "../../model/input/field-checks.ts";
import { meantName } from "../../model/text/nearest-name.ts";

const noQuery = z.strictObject({});
const noBody = z.undefined();

/** Methods that come without a body; a body all the same is not even read. */
const BODILESS = ["GET", "HEAD"];

/**
 * Refuses query parameters that a route's schema does not have, and fields sent to a route that takes none: whoever
 * sends them expects something that will not happen. That is all the schemas of `api/` are asked for when a request
 * comes in: what bodies and values may be is for the library to say, in one way for all its users.
 */
export function refuseUnknownNames(app: FastifyInstance): void {
  app.addHook("onRoute", (route) => {
    const takesBody = ![route.method].flat().some((method) => BODILESS.includes(method));
    route.schema = { querystring: noQuery, ...(takesBody ? { body: noBody } : {}), ...route.schema };
  });
  app.setValidatorCompiler<z.ZodType>(({ schema, httpPart }) => {
    if (schema === noBody) return checkNoFields;
    if (httpPart !== "querystring" || takesAny(schema)) return () => true;
    const known = Object.keys((schema as z.ZodObject).shape);
    return (query: Readonly<Record<string, unknown>>) => {
      const unknown = Object.keys(query).find((name) => !known.includes(name));
      return unknown === undefined ? true : { error: unknownParameter(unknown, known) };
    };
  });
}

/** Pages of the dashboard read their address by themselves. */
function takesAny(schema: z.ZodType): boolean {
  return schema instanceof z.ZodObject && schema.def.catchall instanceof z.ZodUnknown;
}

function unknownParameter(name: string, known: readonly string[]): RotaError {
  const nearest = meantName(name, known);
  const hint =
    nearest !== undefined
      ? `did you mean \`${nearest}\`?`
      : known.length === 0
        ? "this route takes none"
        : `known are ${codeList(known)}`;
  return new RotaError("invalid_field", `unknown query parameter \`${preview(name)}\`: ${hint}`, {
    details: { field: name },
  });
}

/** Many clients send `{}` or `null` where there is nothing to say. */
function checkNoFields(body: unknown): true | { error: RotaError } {
  if (body === undefined || body === null) return true;
  if (!isObject(body)) {
    return { error: new RotaError("invalid_field", `this route takes no body, and got ${preview(body)}`) };
  }
  const [field] = Object.keys(body);
  if (field === undefined) return true;
  return { error: invalidField(field, `unknown field \`${preview(field)}\`: this route takes none`) };
}
