import type { FastifyInstance, FastifyRequest } from "fastify";

/** The methods of the API's routes. A browser asks about each method but GET, HEAD and POST. */
const METHODS = "DELETE, GET, HEAD, PATCH, POST, PUT";
/** The request headers that Rota reads. A browser asks about each of them, apart from a few harmless ones. */
const REQUEST_HEADERS =
  "authorization, content-type, idempotency-key, last-event-id, x-rota-client, x-rota-task-token, x-rota-via, " +
  "mcp-method, mcp-name, mcp-protocol-version";
/** Response headers that `RotaClient` reads and that browsers hide from pages of another origin by default. */
const RESPONSE_HEADERS = "retry-after";
/** How long a browser may remember a preflight. Chrome caps it at two hours. */
const MAX_AGE_SEC = 600;

/**
 * Lets web pages of the listed origins read responses, by CORS. Without an entry no response has a CORS header, and browsers
 * refuse to show any to a page of another origin.
 *
 * Runs before admission: a preflight carries no API key. It reveals nothing, and the request that follows needs a key. Responses
 * never allow credentials, because Rota reads no cookies: a page must send its key itself.
 */
export function allowOrigins(app: FastifyInstance, origins: readonly string[]): void {
  app.decorateRequest("isListedOrigin", false);
  if (origins.length === 0) return;
  const listed = new Set(origins);
  app.addHook("onRequest", async (request, reply) => {
    if (isOfDashboard(request)) return;
    const { origin } = request.headers;
    // Written to the raw response, because streams write their headers past Fastify.
    reply.raw.setHeader("vary", "origin");
    if (origin === undefined || !listed.has(origin)) return;
    request.isListedOrigin = true;
    reply.raw.setHeader("access-control-allow-origin", origin);
    reply.raw.setHeader("access-control-expose-headers", RESPONSE_HEADERS);
    if (!isPreflight(request)) return;
    reply.hijack();
    reply.raw
      .writeHead(204, {
        "access-control-allow-methods": METHODS,
        "access-control-allow-headers": REQUEST_HEADERS,
        "access-control-max-age": String(MAX_AGE_SEC),
      })
      .end();
  });
}

/** Files of the dashboard may be cached, with a `Vary` of their own. No page of another origin needs them. */
function isOfDashboard({ url }: FastifyRequest): boolean {
  return /^\/ui(?:[/?]|$)/.test(url);
}

function isPreflight({ method, headers }: FastifyRequest): boolean {
  return method === "OPTIONS" && headers["access-control-request-method"] !== undefined;
}
