import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { streamNotifications } from "../../api/notifications.ts";
import { STREAM_HEADERS } from "../event-stream.ts";
import { parseLastEventId } from "../last-event-id.ts";
import type { RouteParts } from "../route-parts.ts";
import { requiredRole } from "./required-role.ts";

/** The notifications of schedules, their runs and workers, as a stream. */
export const notificationRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { streams }) => {
  app.get("/notifications/stream", requiredRole("readOwn", streamNotifications), async (request, reply) => {
    const after = parseLastEventId(request.headers["last-event-id"] ?? request.query.lastEventId);
    // A response to `HEAD` has no body, so it ends at once.
    if (request.method === "HEAD") return reply.headers(STREAM_HEADERS).send("");
    streams.openNotifications(reply.raw, request.callerContext, after === undefined ? {} : { after });
    return reply.hijack();
  });
};
