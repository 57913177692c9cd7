import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { getSchedulerStats } from "../../api/scheduler.ts";
import type { RouteParts } from "../route-parts.ts";
import { requiredRole } from "./required-role.ts";

export const schedulerRoutes: FastifyPluginAsyncZod<RouteParts> = async (app) => {
  app.get("/scheduler/stats", requiredRole("read", getSchedulerStats), async ({ rota }) => rota.stats());
};
