import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { RotaError } from "../../model/errors.ts";
import { shown } from "../../model/field-checks.ts";

/** The methods of each path, as `/tasks/:id`. */
type Paths = ReadonlyMap<string, ReadonlySet<string>>;

/**
 * Answers what no route answers: 405 with `Allow` where the path is known, else 404. It does so before the body is
 * looked at, so that a wrong address is not reported as a wrong body.
 */
export function refuseUnknownRoutes(app: FastifyInstance): void {
  const paths = new Map<string, Set<string>>();
  app.addHook("onRoute", ({ url, method }) => {
    const methods = paths.get(url) ?? new Set();
    for (const each of [method].flat()) methods.add(each);
    paths.set(url, methods);
  });
  app.addHook("onRequest", async (request, reply) => {
    if (request.is404 || isNamesake(request, paths)) refuse(request, reply, paths);
  });
}

/** `DELETE /tasks/stats` is no way to cancel a task called `stats`: a path that has a route of its own is that alone. */
function isNamesake({ routeOptions, url }: FastifyRequest, paths: Paths): boolean {
  if (routeOptions.url?.includes(":") !== true) return false;
  const path = pathOf(url);
  return paths.has(path) && !path.includes(":");
}

function refuse(request: FastifyRequest, reply: FastifyReply, paths: Paths): never {
  const path = pathOf(request.url);
  const methods = paths.get(path) ?? [...paths].find(([pattern]) => matches(pattern, path))?.[1];
  if (methods === undefined) {
    throw new RotaError("not_found", `there is no route ${shown(`${request.method} ${path}`)}`);
  }
  const allowed = [...methods].sort().join(", ");
  reply.header("allow", allowed);
  throw new RotaError(
    "method_not_allowed",
    `${shown(path)} does not take ${request.method}, only ${allowed}`,
  );
}

function pathOf(url: string): string {
  return url.replace(/[?#].*$/s, "").replace(/(?<=.)\/$/, "");
}

function matches(pattern: string, path: string): boolean {
  const parts = path.split("/");
  const wanted = pattern.split("/");
  return (
    parts.length === wanted.length &&
    wanted.every((part, index) => part === parts[index] || (part.startsWith(":") && parts[index] !== ""))
  );
}
