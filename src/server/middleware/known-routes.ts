import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { RotaError } from "../../model/errors.ts";
import { preview } from "../../model/input/field-checks.ts";
import { nearestName } from "../../model/text/nearest-name.ts";

/** A longer path is not compared with all routes: the comparison is not charged to the caller. */
const HINTED_LENGTH_MAX = 64;
/** Paths have much in common. With more wrong letters it is another path. */
const SLIPS_MAX = 4;

/** The methods of each path, as `/tasks/:id`. */
type Paths = ReadonlyMap<string, ReadonlySet<string>>;

/**
 * Responds to requests for which there is no route: 405 with `Allow` if the path is known, else 404. This happens before the body
 * is checked, so that a wrong address is not reported as a wrong body.
 */
export function refuseUnknownRoutes(app: FastifyInstance): void {
  const paths = new Map<string, Set<string>>();
  app.addHook("onRoute", ({ url, method }) => {
    const methods = paths.get(url) ?? new Set();
    for (const each of [method].flat()) methods.add(each);
    paths.set(url, methods);
  });
  app.addHook("onRequest", (request, reply, done) => {
    if (request.is404 || isNamesake(request, paths)) refuse(request, reply, paths);
    done();
  });
}

/** `DELETE /tasks/stats` must not cancel a task called `stats`: a path with a route of its own is never an id. */
function isNamesake({ routeOptions, url }: FastifyRequest, paths: Paths): boolean {
  if (routeOptions.url?.includes(":") !== true) return false;
  const path = pathOf(url);
  return paths.has(path) && !path.includes(":");
}

function refuse(request: FastifyRequest, reply: FastifyReply, paths: Paths): never {
  const path = pathOf(request.url);
  const methods = paths.get(path) ?? [...paths].find(([pattern]) => matches(pattern, path))?.[1];
  if (methods === undefined) {
    const route = `${request.method} ${path}`;
    throw new RotaError(
      "not_found",
      `there is no route ${preview(route)}: ${hintFor(request.method, path, paths)}`,
    );
  }
  const allowed = [...methods].sort().join(", ");
  reply.header("allow", allowed);
  throw new RotaError(
    "method_not_allowed",
    `${preview(path)} does not take ${request.method}, only ${allowed}`,
  );
}

function hintFor(method: string, path: string, paths: Paths): string {
  const nearest = nearestRoute(method, path, paths);
  if (nearest === undefined) return "`GET /openapi.json` describes all there are";
  return `did you mean ${nearest.replaceAll(/:(\w+)/g, "{$1}")}?`;
}

/** The path under `/v1`, else a route for this method whose path is close, else one for another method. */
function nearestRoute(method: string, path: string, paths: Paths): string | undefined {
  if (path.length > HINTED_LENGTH_MAX) return undefined;
  const versioned = [...paths.keys()].find((pattern) => matches(pattern, `/v1${path}`));
  const pattern = versioned ?? nearestPattern(method, path, paths);
  if (pattern === undefined) return undefined;
  const methods = paths.get(pattern) ?? new Set();
  return `${methods.has(method) ? method : [...methods].sort()[0]} ${pattern}`;
}

function nearestPattern(method: string, path: string, paths: Paths): string | undefined {
  // Parameters are replaced by the parts of the path, so that `/task/tsk_1` is as close to `/tasks/:id` as it looks.
  const patterns = new Map([...paths.keys()].map((pattern) => [filledIn(pattern, path), pattern]));
  const own = [...patterns]
    .filter(([, pattern]) => paths.get(pattern)?.has(method))
    .map(([filled]) => filled);
  const slipsMax = Math.min(Math.floor(path.length / 3), SLIPS_MAX);
  const near = nearestName(path, own, slipsMax) ?? nearestName(path, patterns.keys(), slipsMax);
  return near === undefined ? undefined : patterns.get(near);
}

function filledIn(pattern: string, path: string): string {
  const parts = path.split("/");
  const wanted = pattern.split("/");
  if (parts.length !== wanted.length) return pattern;
  return wanted.map((part, index) => (part.startsWith(":") ? parts[index] : part)).join("/");
}

function pathOf(url: string): string {
  return url.replace(/[?#].*$/s, "").replace(/(?<=.)\/$/, "");
}

function matches(pattern: string, path: string): boolean {
  const parts = path.split("/");
  const wanted = pattern.split("/");
  if (wanted.at(-1) === "*") return path.startsWith(pattern.slice(0, -1));
  return (
    parts.length === wanted.length &&
    wanted.every((part, index) => part === parts[index] || (part.startsWith(":") && parts[index] !== ""))
  );
}
