import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import {
  deleteSession,
  getSession,
  listSessions,
  resetSession,
  sendMessage,
  stopAllOfSession,
  stopSession,
  updateSession,
} from "../../api/sessions.ts";
import type { SessionChanges, SessionMessage, SessionPageInput } from "../../interface/sessions.ts";
import { optionalNumber } from "../../model/input/field-checks.ts";
import { parseMessageRequest } from "../../model/input/session-input.ts";
import { prefersStream } from "../accepts.ts";
import { auditWrite } from "../middleware/audit.ts";
import type { RouteParts } from "../route-parts.ts";
import { refuseKey } from "./idempotency-header.ts";
import { toNumber, withNumbers } from "./query-values.ts";
import { requiredRole } from "./required-role.ts";

/** How long a response may wait for the task of a message, in seconds. */
const TIMEOUT = { min: 1, max: 600, unit: "seconds" } as const;
const TIMEOUT_DEFAULT = 120;

/** Sessions: send a message, stop them, read them and change their settings. */
export const sessionRoutes: FastifyPluginAsyncZod<RouteParts> = async (
  app,
  { runs, installation, largeJson },
) => {
  app.post("/sessions/:key/messages", requiredRole("submit", sendMessage), async (request, reply) => {
    refuseKey(
      request.headers["idempotency-key"],
      "messages have none; leave it out, or submit a task with `message`, `sessionKey` and `idempotencyKey`",
    );
    const { input, wait, cancelOnDisconnect } = parseMessageRequest(request.body);
    const timeout = optionalNumber({ timeout: toNumber(request.query.timeout) }, "timeout", TIMEOUT);
    const run = {
      callerContext: request.callerContext,
      sessionKey: request.params.key,
      message: input["message"],
      send: async () => {
        const sent = await request.rota.sessions.send(request.params.key, input as unknown as SessionMessage);
        // The change is done now, however long the response takes, and even if the caller disconnects.
        await auditWrite(request, installation.audit);
        return sent;
      },
      cancelOnDisconnect,
      reading: largeJson.owed(request),
    };
    if (prefersStream(request.headers.accept)) {
      const answer = await runs.stream(reply.raw, { ...run, timeoutSec: timeout });
      return answer ?? reply.hijack();
    }
    if (wait) {
      const { ended, answer } = await runs.wait(reply.raw, {
        ...run,
        timeoutSec: timeout ?? TIMEOUT_DEFAULT,
      });
      return reply.code(ended ? 200 : 202).send(answer);
    }
    const sent = await run.send();
    return reply.code(sent.taskId === undefined ? 200 : 202).send(sent);
  });

  app.get("/sessions", requiredRole("readOwn", listSessions), async ({ rota, query }) =>
    rota.sessions.list(withNumbers(query, "limit") as SessionPageInput),
  );

  app.get("/sessions/:key", requiredRole("readOwn", getSession), async ({ rota, params }) =>
    rota.sessions.get(params.key),
  );

  app.patch("/sessions/:key", requiredRole("operate", updateSession), async ({ rota, params, body }) =>
    rota.sessions.update(params.key, body as SessionChanges),
  );

  app.delete("/sessions/:key", requiredRole("operate", deleteSession), async ({ rota, params }) =>
    rota.sessions.delete(params.key),
  );

  app.post("/sessions/:key/stop", requiredRole("operate", stopSession), async ({ rota, params }) =>
    rota.sessions.stop(params.key),
  );

  app.post("/sessions/:key/stopall", requiredRole("operate", stopAllOfSession), async ({ rota, params }) =>
    rota.sessions.stopAll(params.key),
  );

  app.post("/sessions/:key/reset", requiredRole("operate", resetSession), async ({ rota, params }) =>
    rota.sessions.reset(params.key),
  );
};
