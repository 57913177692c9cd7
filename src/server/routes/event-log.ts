import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { listEvents } from "../../api/events.ts";
import type { EventPageFilter } from "../../interface/rota.ts";
import type { RouteParts } from "../route-parts.ts";
import { withNumbers } from "./query-values.ts";
import { requiredRole } from "./required-role.ts";

/** Entries that a page with a filter is charged for: it reads up to 5000 rows of the log, which are small. */
const FILTERED_LOOKED = 2_500;

/** Pages of stored events. */
export const eventLogRoutes: FastifyPluginAsyncZod<RouteParts> = async (app) => {
  app.get("/events", requiredRole("read", listEvents), async ({ rota, query, charge }) => {
    if (query.type !== undefined || query.taskId !== undefined) charge?.looked(FILTERED_LOOKED);
    return rota.eventPage(withNumbers(query, "after", "before", "limit") as EventPageFilter);
  });
};
