import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { RotaError } from "../../model/errors.ts";
import { codeList, invalidField, isObject, preview } from "../../model/input/field-checks.ts";
import { meantName } from "../../model/text/nearest-name.ts";

const noQuery = z.strictObject({});
const emptyBody = z.undefined();

/** Methods without a body. If a request sends one all the same, it is not read. */
const BODILESS = ["GET", "HEAD"];

/**
 * Refuses query parameters that the schema of a route does not have, and fields for a route that takes none: the caller expects
 * an effect that will not happen. Requests are checked against the schemas of `api/` for nothing else. The library checks bodies
 * and values, in the same way for HTTP and for programs.
 */
export function refuseUnknownNames(app: FastifyInstance): void {
  app.addHook("onRoute", (route) => {
    const takesBody = ![route.method].flat().some((method) => BODILESS.includes(method));
    route.schema = { querystring: noQuery, ...(takesBody ? { body: emptyBody } : {}), ...route.schema };
  });
  app.setValidatorCompiler<z.ZodType>(({ schema, httpPart }) => {
    if (schema === emptyBody) return checkNoFields;
    if (httpPart !== "querystring" || takesAny(schema)) return () => true;
    const known = Object.keys((schema as z.ZodObject).shape);
    return (query: Readonly<Record<string, unknown>>) => {
      const unknown = Object.keys(query).find((name) => !known.includes(name));
      return unknown === undefined ? true : { error: unknownParameter(unknown, known) };
    };
  });
}

/** Pages of the dashboard parse their address themselves. */
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

/** Many clients send `{}` or `null` where no body is needed. */
function checkNoFields(body: unknown): true | { error: RotaError } {
  if (body === undefined || body === null) return true;
  if (!isObject(body)) {
    return { error: new RotaError("invalid_field", `this route takes no body, and got ${preview(body)}`) };
  }
  const [field] = Object.keys(body);
  if (field === undefined) return true;
  return { error: invalidField(field, `unknown field \`${preview(field)}\`: this route takes none`) };
}
