import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { getSchedulerStats } from "../../api/scheduler.ts";
import type { RouteParts } from "../routes.ts";
import { may } from "./may.ts";

export const schedulerRoutes: FastifyPluginAsyncZod<RouteParts> = async (app) => {
  app.get("/scheduler/stats", may("read", getSchedulerStats), async ({ rota }) => rota.stats());
};
