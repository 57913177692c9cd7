import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { streamEvents } from "../../api/events.ts";
import type { EventsOptions } from "../../interface/rota.ts";
import { STREAM_HEADERS } from "../event-stream.ts";
import { parseLastEventId } from "../last-event-id.ts";
import type { RouteParts } from "../route-parts.ts";
import { withNumbers } from "./query-values.ts";
import { requiredRole } from "./required-role.ts";

/** The events of a tenant, as a stream. */
export const eventRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { streams }) => {
  app.get("/tasks/events", requiredRole("readOwn", streamEvents), async (request, reply) => {
    const { lastEventId, ...filter } = request.query;
    const after = parseLastEventId(request.headers["last-event-id"] ?? lastEventId);
    // A response to `HEAD` has no body, so it ends at once.
    if (request.method === "HEAD") return reply.headers(STREAM_HEADERS).send("");
    const wanted = withNumbers(filter, "scheduleId") as EventsOptions;
    streams.open(reply.raw, request.callerContext, {
      ...wanted,
      ...(after === undefined ? {} : { after }),
    });
    return reply.hijack();
  });
};
