import type { FastifyInstance } from "fastify";
import { z } from "zod";
import { RotaError } from "../../model/errors.ts";
import { list, shown } from "../../model/field-checks.ts";
import { nearestName } from "../../model/nearest-name.ts";

const noQuery = z.strictObject({});

/**
 * Refuses query parameters that a route's schema does not have. That is all the schemas of `api/` are asked for when a
 * request comes in: what the values may be is for the library to say, in one way for all its users.
 */
export function refuseUnknownQuery(app: FastifyInstance): void {
  app.addHook("onRoute", (route) => {
    route.schema = { querystring: noQuery, ...route.schema };
  });
  app.setValidatorCompiler<z.ZodObject>(({ schema, httpPart }) => {
    if (httpPart !== "querystring") return () => true;
    const known = Object.keys(schema.shape);
    return (query: Readonly<Record<string, unknown>>) => {
      const unknown = Object.keys(query).find((name) => !known.includes(name));
      return unknown === undefined ? true : { error: unknownParameter(unknown, known) };
    };
  });
}

function unknownParameter(name: string, known: readonly string[]): RotaError {
  const nearest = nearestName(name, known);
  const hint =
    nearest !== undefined
      ? `did you mean \`${nearest}\`?`
      : known.length === 0
        ? "this route takes none"
        : `known are ${list(known)}`;
  return new RotaError("invalid_field", `unknown query parameter \`${shown(name)}\`: ${hint}`, {
    details: { field: name },
  });
}
