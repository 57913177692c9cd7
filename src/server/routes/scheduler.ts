import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { getSchedulerStats } from "../../api/scheduler.ts";
import type { RouteParts } from "../routes.ts";

export const schedulerRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { rota }) => {
  app.get("/scheduler/stats", { schema: getSchedulerStats }, async () => rota.stats());
};
