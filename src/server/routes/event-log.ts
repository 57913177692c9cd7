import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { listEvents } from "../../api/events.ts";
import type { EventPageFilter } from "../../interface/rota.ts";
import type { RouteParts } from "../route-parts.ts";
import { withNumbers } from "./query-values.ts";
import { requiredRole } from "./required-role.ts";

/** Pages of stored events. */
export const eventLogRoutes: FastifyPluginAsyncZod<RouteParts> = async (app) => {
  app.get("/events", requiredRole("read", listEvents), async ({ rota, query }) =>
    rota.eventPage(withNumbers(query, "after", "before", "limit") as EventPageFilter),
  );
};
