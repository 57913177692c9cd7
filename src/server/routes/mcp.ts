import { createHash, randomBytes } from "node:crypto";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { sendMcpMessage } from "../../api/mcp.ts";
import type { LocalTenant } from "../../interface/rota.ts";
import type { McpBackend, McpRota } from "../../mcp/backend.ts";
import type { McpRequestHandler } from "../../mcp/http.ts";
import { RotaError } from "../../model/errors.ts";
import { isObject } from "../../model/input/field-checks.ts";
import type { Provenance } from "../../model/provenance.ts";
import { goDurationSeconds } from "../../model/text/go-duration.ts";
import { TurnBudget } from "../../services/turn-budget.ts";
import { addressOf } from "../address.ts";
import { routeOf } from "../middleware/audit.ts";
import type { RouteParts } from "../route-parts.ts";
import { whenClosed } from "../when-closed.ts";
import { requiredRole } from "./required-role.ts";

/** How long the retention is taken for unchanged. */
const RETENTION_KEPT_MS = 60_000;

/** Where the request is for the library, which looks at nothing but its path. */
const URL_INSIDE = "http://rota.invalid/mcp";

/** Messages begun in one turn of the event loop. Each takes up to a millisecond, most of it in the package. */
const BEGUN_PER_TURN = { pieces: 4, bytes: Number.POSITIVE_INFINITY } as const;

/** `POST /mcp`: tools for AI agents. Each node can respond to each request: none keeps anything of a client. */
export const mcpRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, parts) => {
  // Without keys, only this process can have asked the question that is replied to.
  const ownSecret = randomBytes(32);
  const retentionMs = keptRetention(parts);
  let loading: Promise<McpRequestHandler> | null = null;
  const turns = new TurnBudget<string>(BEGUN_PER_TURN);

  /** The package takes a tenth of a second of CPU time to load, which a start does not pay. */
  function handler(): Promise<McpRequestHandler> {
    loading ??= import("../../mcp/http.ts").then(
      ({ createHttpHandler }) =>
        createHttpHandler({ onError: (error) => parts.log.debug({ error }, "an MCP message was refused") }),
      (error) => {
        loading = null;
        throw error;
      },
    );
    return loading;
  }

  app.post("/mcp", requiredRole("readOwn", sendMcpMessage), async (request, reply) => {
    const { body } = request;
    if (Array.isArray(body)) {
      throw new RotaError("invalid_json", "send one message a request: batches are not part of MCP any more");
    }
    if (!isObject(body))
      throw new RotaError(
        "invalid_json",
        'the body must be a message of JSON-RPC: {"jsonrpc": "2.0", "id": 1, "method": …}',
      );
    const respond = await handler();
    if (turns.isOver) await turns.next(request.callerContext.caller.tenant);
    turns.used(0);
    const gone = new AbortController();
    whenClosed(reply.raw, () => gone.abort());
    const inside = new Request(URL_INSIDE, {
      method: "POST",
      headers: headersOf(request),
      signal: gone.signal,
    });
    const response = await respond(inside, body, backendOf(request, gone.signal));
    return send(reply, response);
  });

  /** Rota for the caller, where all that is made says that it came by MCP, and from which client. */
  function rotaFor({ callerContext }: FastifyRequest, client: string | null): LocalTenant {
    const { caller, access } = callerContext;
    const provenance = mcpProvenance(callerContext.provenance, client);
    return parts.installation.tenant(caller.tenant, { ...access, provenance });
  }

  function backendOf(request: FastifyRequest, gone: AbortSignal): McpBackend {
    const { callerContext } = request;
    const { caller, role, key } = callerContext;
    return {
      caller: { role, agentId: caller.agent, keyId: caller.keyId },
      secret: key === null ? ownSecret : secretOf(key),
      rota: (client) => chargedReads(rotaFor(request, client), request, { ...parts, gone }),
      wait: (taskId, { seconds, signal }) =>
        parts.waits.wait(callerContext, taskId, {
          ...parts.largeJson.paid(request),
          seconds,
          gone: AbortSignal.any([gone, signal]),
        }),
      now: () => parts.clock.now(),
      retentionMs: () => retentionMs(caller.tenant),
      changed({ tool, subject, isChosen }, client) {
        if (caller.keyId === null && callerContext.provenance.within === null) return;
        parts.installation.audit.record({
          tenantId: caller.tenant,
          keyId: caller.keyId,
          route: `${routeOf(request)} ${tool}`,
          subject,
          isChosen,
          address: addressOf(request),
          provenance: mcpProvenance(callerContext.provenance, client),
        });
      },
      refused: (error) => parts.onRefusedCall(request, error),
      failed(error) {
        parts.log.error({ error, method: request.method, url: request.url }, "a request failed unexpectedly");
        return "internal error of Rota; its log has the details";
      },
    };
  }
};

function mcpProvenance({ createdBy, within }: Provenance, client: string | null): Provenance {
  const { client: _header, ...maker } = createdBy;
  return { createdBy: { ...maker, via: "mcp", ...(client === null ? {} : { client }) }, within };
}

/** Lists take turns and charge for the entries that they look at, and single tasks charge for their size, as their routes do. */
function chargedReads(
  rota: LocalTenant,
  request: FastifyRequest,
  {
    pageTurns,
    largeJson,
    gone,
  }: Pick<RouteParts, "pageTurns" | "largeJson"> & { readonly gone: AbortSignal },
): McpRota {
  const { tasks, sessions, schedules, runs, agents } = rota;
  const onLooked = (entries: number) => request.charge?.looked(entries);
  const reading = largeJson.paid(request);
  const working = largeJson.paid(request, "bytesIn");
  const page = <Page>(read: () => Promise<Page>) =>
    request.charge === null ? read() : pageTurns.during(request.charge.owner, gone, read);
  return {
    tasks: {
      ...tasks,
      listRows: (filter) => page(() => tasks.listRows(filter, { onLooked })),
      get: (id) => tasks.get(id, reading),
      explain: (id) => tasks.explain(id, working),
      retry: (id, options) => tasks.retry(id, options, working),
      submitAgain: (id, input) => tasks.submitAgain(id, input, working),
    },
    sessions: { ...sessions, list: (filter) => page(() => sessions.list(filter)) },
    schedules: {
      ...schedules,
      list: (filter) => page(() => schedules.list(filter)),
      get: (id) => schedules.get(id, reading),
      update: (id, changes) => schedules.update(id, changes, working),
      run: (id, options) => schedules.run(id, options, working),
    },
    runs: { ...runs, list: (filter) => page(() => runs.list(filter)) },
    agents: { ...agents, list: (filter) => page(() => agents.list(filter)) },
  };
}

/** All nodes know the key that a request comes with. It never leaves them, and its owner gains nothing by signing with it. */
function secretOf(key: string): Uint8Array {
  return createHash("sha256").update("rota mcp question\0").update(key).digest();
}

/** Secrets are not passed on: the library has no use for them. */
const SECRETS = ["authorization", "cookie", "x-rota-task-token"];

function headersOf({ headers }: FastifyRequest): Headers {
  const passed = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined && !SECRETS.includes(name)) passed.set(name, String(value));
  }
  return passed;
}

/** A whole text is sent as such, so that it is charged and bounded like other responses. */
async function send(reply: FastifyReply, response: Response): Promise<FastifyReply> {
  const isStream = response.headers.get("content-type")?.startsWith("text/event-stream") === true;
  if (isStream) return reply.send(response);
  for (const [name, value] of response.headers) if (name !== "content-length") reply.header(name, value);
  const text = await response.text();
  return reply.code(response.status).send(text === "" ? undefined : text);
}

function keptRetention({ installation, clock }: RouteParts): (tenant: string) => Promise<number | null> {
  let kept: { readonly at: number; readonly ms: number | null } | null = null;
  return async (tenant) => {
    const now = clock.monotonic();
    if (kept !== null && now - kept.at < RETENTION_KEPT_MS) return kept.ms;
    const { config } = await installation.tenant(tenant).stats();
    const seconds = goDurationSeconds(config.resultTTL);
    kept = { at: now, ms: seconds === null ? null : seconds * 1_000 };
    return kept.ms;
  };
}
