import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { streamEvents } from "../../api/events.ts";
import type { EventsOptions } from "../../interface/rota.ts";
import { STREAM_HEADERS } from "../event-stream.ts";
import { parseLastEventId } from "../last-event-id.ts";
import type { RouteParts } from "../routes.ts";
import { withNumbers } from "./query-values.ts";
import { requiredRole } from "./required-role.ts";

/** What happens, as a stream. */
export const eventRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { streams }) => {
  app.get("/tasks/events", requiredRole("readOwn", streamEvents), async (request, reply) => {
    const { lastEventId, ...filter } = request.query;
    const after = parseLastEventId(request.headers["last-event-id"] ?? lastEventId);
    // A stream without its body has nothing to wait for.
    if (request.method === "HEAD") return reply.headers(STREAM_HEADERS).send("");
    const wanted = withNumbers(filter, "scheduleId") as EventsOptions;
    streams.open(reply.raw, request.visitor, {
      ...wanted,
      ...(after === undefined ? {} : { after }),
    });
    return reply.hijack();
  });
};
