import type { Server } from "node:http";
import type { Socket } from "node:net";
import Fastify, { type FastifyError, type FastifyInstance } from "fastify";
import { systemClock } from "../clock/system-clock.ts";
import type { Rota } from "../interface/rota.ts";
import type { Clock } from "../model/clock.ts";
import type { Log } from "../model/log.ts";
import { BatchTurns } from "./batch-turns.ts";
import type { Dashboard } from "./dashboard/dashboard.ts";
import { serveDashboard } from "./dashboard/serve-dashboard.ts";
import { EventStreams } from "./event-stream.ts";
import type { HeldBytesOptions } from "./held-bytes.ts";
import { LargeJson } from "./large-json.ts";
import { MessageRuns } from "./message-runs.ts";
import { admitCallers } from "./middleware/admission.ts";
import { auditWrites } from "./middleware/audit.ts";
import { boundBodies } from "./middleware/bound-bodies.ts";
import { answerBrokenRequest, REQUEST_TIMEOUT_MS } from "./middleware/broken-requests.ts";
import { chargeRequests } from "./middleware/charge-requests.ts";
import { allowOrigins } from "./middleware/cors.ts";
import { answerErrors, BODY_BYTES_MAX, sendError, toRotaError } from "./middleware/errors.ts";
import { acceptJsonBodies } from "./middleware/json-body.ts";
import { refuseUnknownNames } from "./middleware/known-names.ts";
import { refuseUnknownRoutes } from "./middleware/known-routes.ts";
import { Refusals } from "./middleware/refusals.ts";
import {
  DEFAULT_REQUEST_LIMITS,
  RequestLimits,
  type RequestLimitsOptions,
} from "./middleware/request-limits.ts";
import { boundUnreadAnswers, UNREAD_MS } from "./middleware/unread-answers.ts";
import { ReadTurns } from "./read-turns.ts";
import { Replays } from "./replays.ts";
import type { RouteParts } from "./route-parts.ts";
import { registerRoutes } from "./routes.ts";
import { TaskWaits } from "./task-waits.ts";

/** More than all streams and waits together. Each connection takes memory, even an idle one. */
const CONNECTIONS_MAX = 20_000;
/** How long a connection without a byte may stay open once the server closes: a request on its way arrives meanwhile. */
const SILENT_MS = 100;
/** The system asks the other end of a silent connection for a sign of life after this. */
const KEEP_ALIVE_MS = 15_000;

export interface ServerOptions {
  readonly rota: Rota;
  readonly log: Log;
  /** Whether no other machine can reach the server. Default: true. A local server needs no API key until one exists. */
  readonly isLocal?: boolean;
  readonly rateLimit?: Partial<RequestLimitsOptions>;
  /** The configuration for `GET /v1/config`, which masks secrets. Default: empty. */
  readonly config?: () => object;
  /** Served at `/ui/`. Default: no dashboard. */
  readonly dashboard?: Dashboard;
  /** The path prefix behind a proxy, such as `/rota`. The server responds both there and at `/`. Default: only at `/`. */
  readonly basePath?: string;
  /**
   * Which `X-Forwarded-For` to trust: the number of proxies in front of the server, or their addresses. False, the default: none.
   */
  readonly trustProxy?: false | number | readonly string[];
  /** The origins whose web pages may read responses in a browser. Default: only the server's own. */
  readonly cors?: { readonly origins: readonly string[] };
  /** For tests: how long a request may take to arrive, and a response to be read. */
  readonly patience?: { readonly requestMs: number; readonly unreadMs: number };
  /** For tests: how many bytes of responses may be unread. */
  readonly unreadBytes?: HeldBytesOptions;
  /** For tests: how many bytes of bodies may be on their way. */
  readonly bodyBytes?: HeldBytesOptions;
  /** For tests: the clock of heartbeats. */
  readonly clock?: Clock;
}

/** The HTTP server of one Rota, not yet listening. */
export function createServer(options: ServerOptions): FastifyInstance {
  const { rota, log, isLocal = true, rateLimit, clock = systemClock } = options;
  const {
    config = () => ({}),
    dashboard,
    basePath = "",
    trustProxy = false,
    cors,
    patience,
    unreadBytes,
    bodyBytes,
  } = options;
  const { requestMs, unreadMs } = patience ?? { requestMs: REQUEST_TIMEOUT_MS, unreadMs: UNREAD_MS };
  const app = Fastify({
    bodyLimit: BODY_BYTES_MAX,
    requestTimeout: requestMs,
    trustProxy: trustedProxies(trustProxy),
    rewriteUrl: ({ url = "/" }) => withoutBasePath(url, basePath),
    // Reads work until the last connection is closed. The library itself refuses what is no longer possible.
    return503OnClosing: false,
    http: {
      // Finds connections whose other end is gone without a word, as behind a NAT: claims and streams wait on them for long.
      keepAlive: true,
      keepAliveInitialDelay: KEEP_ALIVE_MS,
      headersTimeout: requestMs,
      requestTimeout: requestMs,
      // By default Node checks for slow requests every 30 seconds, which would double the limit.
      connectionsCheckingInterval: requestMs / 6,
      // Node would respond to a request without `Host` with an empty page. `local-only.ts` responds with the reason.
      requireHostHeader: false,
      // Of two `Host` or `Content-Type` headers Node would pass on only one, and hide the other.
      joinDuplicateHeaders: true,
    },
    routerOptions: {
      ignoreTrailingSlash: true,
      // Node bounds the length of the request line. An id that is too long is one that does not exist.
      maxParamLength: Number.MAX_SAFE_INTEGER,
    },
    clientErrorHandler: answerBrokenRequest,
    frameworkErrors: (error: FastifyError, _request, reply) => sendError(reply, toRotaError(error)),
  });
  app.server.maxConnections = CONNECTIONS_MAX;
  // Node would refuse an unknown `Expect` with an empty page. Rota ignores the header.
  app.server.on("checkExpectation", (request, response) => app.server.emit("request", request, response));
  // No cache may store responses that need a key. The files of the dashboard set their own header.
  // Hooks through which every request passes are not asynchronous where nothing waits: a promise for each would cost more than
  // what they do.
  app.addHook("onRequest", (_request, reply, done) => {
    reply.header("cache-control", "no-store").header("x-content-type-options", "nosniff");
    done();
  });
  allowOrigins(app, cors?.origins ?? []);
  const hasSecondTenant = () => rota.hasSecondTenant();
  const largeJson = new LargeJson();
  const pageTurns = new ReadTurns(hasSecondTenant);
  chargeRequests(app, { pageTurns, largeJson });
  const limit = new RequestLimits(
    { ...DEFAULT_REQUEST_LIMITS, ...rateLimit },
    { clock, hasSecondTenant, onRefused: () => rota.noteRefused("rate") },
  );
  admitCallers(app, {
    rota,
    isLocal,
    hasDashboard: dashboard !== undefined,
    rateLimit: limit,
    clock,
  });
  boundUnreadAnswers(app, {
    unreadMs,
    clock,
    hasSecondTenant,
    ...(unreadBytes === undefined ? {} : { unreadBytes }),
  });
  boundBodies(app, { hasSecondTenant, bodyBytes });
  auditWrites(app, rota.audit);
  refuseUnknownRoutes(app);
  refuseUnknownNames(app);
  acceptJsonBodies(app, largeJson);
  const refusals = new Refusals({
    audit: rota.audit,
    clock,
    onRefused: (refusal) => rota.noteDenied(refusal),
  });
  const onRefusedCall: RouteParts["onRefusedCall"] = (request, { code, status }) => {
    if (code === "quota_exceeded") rota.noteRefused("quota");
    refusals.record(request, status);
  };
  answerErrors(app, { log, onRefused: onRefusedCall });
  // The schemas of api/ describe responses, and tests check responses against them. Checking each response again at run time
  // would only turn a bug of ours into an error for the caller.
  app.setSerializerCompiler(() => JSON.stringify);

  if (dashboard !== undefined) serveDashboard(app, { dashboard, basePath });
  const replays = new Replays(limit, { streams: new ReadTurns(hasSecondTenant), pages: pageTurns });
  const streams = new EventStreams({ keys: rota.keys, clock, log, replays, hasSecondTenant });
  const waits = new TaskWaits(rota.keys, { hasSecondTenant });
  registerRoutes(app, {
    installation: rota,
    isLocal,
    hasDashboard: dashboard !== undefined,
    basePath,
    config,
    streams,
    waits,
    runs: new MessageRuns({ streams, waits }),
    largeJson,
    pageTurns,
    batchTurns: new BatchTurns(hasSecondTenant),
    clock,
    log,
    onRefusedCall,
  });
  // Streams, waits and connections without a request would delay the close. Other requests end by themselves.
  const closeSilent = silentConnections(app.server);
  app.addHook("preClose", async () => {
    streams.close();
    waits.close();
    refusals.flush();
    closeSilent();
  });
  return app;
}

/**
 * Returns a function that closes, `SILENT_MS` later, the connections that have not sent a byte by then. To Node they are not idle,
 * because it times them like a request that arrives slowly. Clients open such connections ahead of their next requests. One whose
 * first request is on its way looks the same at first: to close it at once would reset that request.
 */
function silentConnections(server: Server): () => void {
  const connections = new Set<Socket>();
  server.on("connection", (socket) => {
    connections.add(socket);
    socket.once("close", () => connections.delete(socket));
  });
  return () => {
    const timer = setTimeout(() => {
      for (const socket of connections) if (socket.bytesRead === 0) socket.destroy();
    }, SILENT_MS);
    server.once("close", () => clearTimeout(timer));
  };
}

/** Hop 0 is the other end of the connection. */
function trustedProxies(
  trusted: NonNullable<ServerOptions["trustProxy"]>,
): false | string[] | ((address: string, hop: number) => boolean) {
  if (typeof trusted === "number") return (_address, hop) => hop < trusted;
  return trusted === false ? false : [...trusted];
}

/** Some proxies forward the whole path, others strip the prefix. */
function withoutBasePath(url: string, basePath: string): string {
  if (basePath === "" || !url.startsWith(basePath)) return url;
  const rest = url.slice(basePath.length);
  if (rest === "" || rest.startsWith("?")) return `/${rest}`;
  return rest.startsWith("/") ? rest : url;
}
