import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { RotaError } from "../../model/errors.ts";
import { shown } from "../../model/field-checks.ts";

/**
 * Answers what no route answers: 405 with `Allow` where the path is known, else 404. It does so before the body is
 * looked at, so that a wrong address is not reported as a wrong body.
 */
export function refuseUnknownRoutes(app: FastifyInstance): void {
  const methodsByPath = new Map<string, Set<string>>();
  app.addHook("onRoute", ({ url, method }) => {
    const methods = methodsByPath.get(url) ?? new Set();
    for (const each of [method].flat()) methods.add(each);
    methodsByPath.set(url, methods);
  });
  app.addHook("onRequest", async (request, reply) => {
    if (request.is404) refuse(request, reply, methodsByPath);
  });
}

function refuse(
  request: FastifyRequest,
  reply: FastifyReply,
  methodsByPath: Map<string, Set<string>>,
): never {
  const path = pathOf(request.url);
  const route = [...methodsByPath].find(([pattern]) => matches(pattern, path));
  if (route === undefined) {
    throw new RotaError("not_found", `there is no route ${shown(`${request.method} ${path}`)}`);
  }
  const allowed = [...route[1]].sort().join(", ");
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
