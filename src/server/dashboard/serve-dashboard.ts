import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import { RotaError } from "../../model/errors.ts";
import { preview } from "../../model/input/field-checks.ts";
import { prefersHtml } from "../accepts.ts";
import type { Dashboard } from "./dashboard.ts";
import { type DashboardFile, type DashboardFiles, type Encoding, INDEX } from "./dashboard-files.ts";
import { BUILDING_PAGE, failedPage } from "./dashboard-pages.ts";

const HEADERS = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
} as const;

/** Preferred first: the smaller encoding. */
const ENCODINGS: readonly Encoding[] = ["br", "gzip"];

/** How soon the browser asks again while the dashboard is being built. */
const REFRESH_SEC = 1;

/**
 * Serves the files of the dashboard below `/ui/` and redirects browsers there from `/`. The files need no key: they contain only
 * the program. Its data comes from the API, with the key of the user.
 */
export function serveDashboard(
  app: FastifyInstance,
  { dashboard, basePath }: { readonly dashboard: Dashboard; readonly basePath: string },
): void {
  app.addHook("onRequest", (request, reply, done) => {
    if (!leadsToDashboard(request)) return done();
    reply.headers(HEADERS).header("vary", "accept").redirect(`${basePath}/ui/`, 302);
  });
  const page = { config: { access: "open" }, schema: { querystring: z.looseObject({}) } } as const;
  const answer = (request: FastifyRequest, reply: FastifyReply) => respond(request, reply, dashboard);
  app.get("/ui", page, answer);
  app.get("/ui/*", page, answer);
}

/** Whether a browser opens the address of the server itself. A program that accepts JSON gets the links instead. */
export function leadsToDashboard({ method, url, headers }: FastifyRequest): boolean {
  return (method === "GET" || method === "HEAD") && /^\/(?:\?|$)/.test(url) && prefersHtml(headers.accept);
}

function respond(request: FastifyRequest, reply: FastifyReply, { state }: Dashboard): FastifyReply {
  const { headers, params } = request;
  const path = (params as { "*"?: string })["*"] ?? "";
  // The address that the server prints leads to the page for any client, also for one that names no type, as curl does.
  const wantsPage = path === "" || prefersHtml(headers.accept);
  reply.headers(HEADERS).header("vary", "accept, accept-encoding");
  if (state.kind === "ready") {
    const file = state.files.get(path) ?? (wantsPage ? pageOf(state.files) : undefined);
    if (file !== undefined) return sendFile(request, reply, file);
  } else if (wantsPage) {
    reply.type("text/html; charset=utf-8").header("cache-control", "no-store");
    if (state.kind === "failed") return reply.send(failedPage(state.remedy));
    return reply.header("refresh", REFRESH_SEC).send(BUILDING_PAGE);
  }
  throw new RotaError("not_found", `the dashboard has no file ${preview(path)}`);
}

/** Every page of the dashboard is the same file, which shows what its address says. */
function pageOf(files: DashboardFiles): DashboardFile | undefined {
  return files.get(INDEX);
}

function sendFile({ headers }: FastifyRequest, reply: FastifyReply, file: DashboardFile): FastifyReply {
  const { type, immutable, bytes, encoded } = file;
  const encoding = ENCODINGS.find((each) => encoded[each] && accepts(headers["accept-encoding"], each));
  // Each encoding is a representation of its own, so it needs its own tag.
  const etag = encoding === undefined ? file.etag : file.etag.replace(/"$/, `-${encoding}"`);
  reply
    .type(type)
    .header("etag", etag)
    .header("cache-control", immutable ? "public, max-age=31536000, immutable" : "no-cache");
  if (isKnown(headers["if-none-match"], etag)) return reply.code(304).send();
  if (encoding === undefined) return reply.send(bytes);
  return reply.header("content-encoding", encoding).send(encoded[encoding]);
}

function isKnown(given: string | undefined, etag: string): boolean {
  if (given === undefined) return false;
  const known = given.split(",").map((each) => each.trim().replace(/^W\//, ""));
  return known.includes(etag) || known.includes("*");
}

/** `gzip;q=0` means that it is not wanted. */
function accepts(given: string | string[] | undefined, encoding: Encoding): boolean {
  const ranges = String(given ?? "")
    .toLowerCase()
    .split(",")
    .map((range) => range.trim().split(/\s*;\s*/));
  const range = ranges.find(([name]) => name === encoding);
  return range !== undefined && !range.some((parameter) => /^q=0(?:\.0*)?$/.test(parameter));
}
