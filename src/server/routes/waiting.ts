import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { getWaiting } from "../../api/waiting.ts";
import type { RouteParts } from "../route-parts.ts";
import { requiredRole } from "./required-role.ts";

/** Counts of waiting tasks by reason. */
export const waitingRoutes: FastifyPluginAsyncZod<RouteParts> = async (app) => {
  app.get("/waiting", requiredRole("read", getWaiting), async ({ rota }) => rota.waiting());
};
