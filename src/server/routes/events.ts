import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { streamEvents } from "../../api/events.ts";
import { invalidField, quoted } from "../../model/field-checks.ts";
import { STREAM_HEADERS } from "../event-stream.ts";
import type { RouteParts } from "../routes.ts";

/** What happens, as a stream. */
export const eventRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { streams }) => {
  app.get("/tasks/events", { schema: streamEvents }, async (request, reply) => {
    const { lastEventId, ...filter } = request.query;
    const after = lastSeen(request.headers["last-event-id"] ?? lastEventId);
    // A stream without its body has nothing to wait for.
    if (request.method === "HEAD") return reply.headers(STREAM_HEADERS).send("");
    streams.open(reply.raw, { ...filter, ...(after === undefined ? {} : { after }) });
    return reply.hijack();
  });
};

/** A browser that has seen nothing yet sends nothing, and some of its stand-ins an empty text. */
function lastSeen(id: unknown): number | undefined {
  if (id === undefined || id === "") return undefined;
  const number = typeof id === "string" && /^\d{1,16}$/.test(id) ? Number(id) : Number.NaN;
  if (Number.isSafeInteger(number)) return number;
  throw invalidField(
    "Last-Event-ID",
    `\`Last-Event-ID\` must be the \`id\` of an event of this stream, a number, not ${quoted(id)}`,
  );
}
