import type { FastifyReply, FastifyRequest } from "fastify";
import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import {
  claimTasks,
  deleteWorker,
  drainWorker,
  finishAttempt,
  finishAttempts,
  getWorker,
  heartbeatAttempt,
  heartbeatWorker,
  listWorkers,
  readAttemptSession,
  readDependency,
  registerWorker,
  streamSignals,
} from "../../api/workers.ts";
import type {
  AttemptFinishInput,
  AttemptHeartbeatInput,
  ClaimInput,
  FinishInput,
  HeartbeatInput,
  WorkerCaller,
  WorkerInput,
  WorkerPageInput,
} from "../../interface/workers.ts";
import { RotaError } from "../../model/errors.ts";
import { isObject } from "../../model/input/field-checks.ts";
import { WORKER_SLOTS_MAX } from "../../model/worker.ts";
import { STREAM_HEADERS } from "../event-stream.ts";
import { auditWorker } from "../middleware/audit.ts";
import type { RouteParts } from "../route-parts.ts";
import { whenClosed } from "../when-closed.ts";
import { withNumbers } from "./query-values.ts";
import { requiredRole } from "./required-role.ts";

/** Workers: processes elsewhere that pull tasks. */
export const workerRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { installation, streams }) => {
  const { audit } = installation;

  app.post("/workers", requiredRole("work", registerWorker), async (request, reply) => {
    reply.code(201);
    const registered = await request.rota.workers.register(request.body as WorkerInput, callerOf(request));
    auditWorker(request, audit, registered.workerId);
    return registered;
  });

  app.get("/workers", requiredRole("read", listWorkers), async ({ rota, query }) =>
    rota.workers.list(withNumbers(query, "limit") as WorkerPageInput),
  );

  app.get("/workers/:id", requiredRole("read", getWorker), async ({ rota, params }) =>
    rota.workers.get(params.id),
  );

  app.post(
    "/workers/:id/claim",
    requiredRole("work", claimTasks, listedIn("finishes")),
    async (request, reply) => {
      const claim = await claimWhileAllowed(request, reply, installation.keys);
      if (claim.answer.attempts.length > 0) endWhenClosed(reply, claim);
      reply.type("application/json; charset=utf-8").serializer(String);
      return claimText(claim) as never;
    },
  );

  app.post(
    "/workers/:id/heartbeat",
    requiredRole("work", heartbeatWorker, listedIn("attempts")),
    async (request) =>
      request.rota.workers.heartbeat(request.params.id, request.body as HeartbeatInput, callerOf(request)),
  );

  app.post(
    "/workers/:id/finish",
    requiredRole("work", finishAttempts, listedIn("attempts")),
    async (request) =>
      request.rota.workers.finish(request.params.id, request.body as FinishInput, callerOf(request)),
  );

  app.get("/workers/:id/signals", requiredRole("work", streamSignals), async (request, reply) => {
    // A response to `HEAD` has no body, so it ends at once.
    if (request.method === "HEAD") return reply.headers(STREAM_HEADERS).send("");
    const { rota, params, callerContext } = request;
    await streams.openSignals(reply.raw, callerContext, () =>
      rota.workers.signals(params.id, callerOf(request)),
    );
    return reply.hijack();
  });

  app.post("/workers/:id/drain", requiredRole("operate", drainWorker), async ({ rota, params }) =>
    rota.workers.drain(params.id),
  );

  app.delete("/workers/:id", requiredRole("work", deleteWorker), async (request) => {
    const { workers } = request.rota;
    const isWorker = request.callerContext.caller.role === "worker";
    const deleted = await (isWorker
      ? workers.deleteOwn(request.params.id, callerOf(request))
      : workers.delete(request.params.id));
    auditWorker(request, audit, request.params.id);
    return deleted;
  });

  app.post("/attempts/:token/heartbeat", requiredRole("work", heartbeatAttempt), async (request) =>
    request.rota.workers.heartbeatAttempt(
      request.params.token,
      request.body as AttemptHeartbeatInput,
      callerOfAttempt(request),
    ),
  );

  app.post("/attempts/:token/finish", requiredRole("work", finishAttempt), async (request) =>
    request.rota.workers.finishAttempt(
      request.params.token,
      request.body as AttemptFinishInput,
      callerOfAttempt(request),
    ),
  );

  app.get("/attempts/:token/dependencies/:taskId", requiredRole("work", readDependency), async (request) =>
    request.rota.workers.dependency(request.params.token, request.params.taskId, callerOfAttempt(request)),
  );

  app.get("/attempts/:token/session", requiredRole("work", readAttemptSession), async (request) => {
    const { turns } = withNumbers(request.query, "turns") as { turns?: number };
    return request.rota.workers.session(request.params.token, { turns }, callerOfAttempt(request));
  });
};

function callerOf({ callerContext: { caller } }: FastifyRequest): WorkerCaller {
  return { keyId: caller.keyId, agents: caller.workerAgents ?? null };
}

/** The same for a call that names an attempt, which is charged to its worker. */
function callerOfAttempt(request: FastifyRequest): WorkerCaller {
  return {
    ...callerOf(request),
    onWorker: (id) => {
      request.attemptWorker = id;
    },
  };
}

/** The attempts that a body lists are rows to read and write. It is not checked yet. */
function listedIn(field: "attempts" | "finishes"): (body: unknown) => { rows: number } {
  return (body) => {
    const listed = isObject(body) ? body[field] : undefined;
    return { rows: Array.isArray(listed) ? Math.min(listed.length, WORKER_SLOTS_MAX) : 0 };
  };
}

type DeliverableClaim = Awaited<ReturnType<FastifyRequest["rota"]["workers"]["claim"]>>;

/** Claims for as long as the caller is connected and its key is valid: a key that was deleted while the claim waits gets no task. */
async function claimWhileAllowed(
  request: FastifyRequest,
  reply: FastifyReply,
  keys: RouteParts["installation"]["keys"],
): Promise<DeliverableClaim> {
  const gone = new AbortController();
  whenClosed(reply.raw, () => {
    // An abort makes an error with its stack, which a response that was sent need not pay for.
    if (!reply.raw.writableFinished) gone.abort();
  });
  const { key } = request.callerContext;
  const watch = key === null ? null : keys.watch(key);
  watch?.gone.addEventListener("abort", () => gone.abort());
  try {
    const { id } = request.params as { id: string };
    const caller = { ...callerOf(request), gone: gone.signal };
    const claim = await request.rota.workers.claim(id, request.body as ClaimInput, caller);
    if (!watch?.gone.aborted) return claim;
    await claim.ended({ sent: false });
    throw new RotaError("unauthorized", "this API key was deleted or has expired");
  } finally {
    watch?.stop();
  }
}

/** The results of dependencies, which may be megabytes, are inserted as stored text. */
function claimText({ answer: { attempts, ...answer }, taskTexts }: DeliverableClaim): string {
  const texts = attempts.map(
    ({ task: _, ...attempt }, index) => `${JSON.stringify(attempt).slice(0, -1)},"task":${taskTexts[index]}}`,
  );
  return `${JSON.stringify({ ...answer, attempts: [] }).slice(0, -2)}${texts.join(",")}]}`;
}

/** A response that was not handed to the operating system when the connection closes did not reach the worker. */
function endWhenClosed(reply: FastifyReply, claim: DeliverableClaim): void {
  whenClosed(reply.raw, () => void claim.ended({ sent: reply.raw.writableFinished }));
}
