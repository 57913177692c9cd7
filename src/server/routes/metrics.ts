import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { getMetrics } from "../../api/metrics.ts";
import type { RouteParts } from "../route-parts.ts";
import { requiredRole } from "./required-role.ts";

export const metricsRoutes: FastifyPluginAsyncZod<RouteParts> = async (app) => {
  app.get("/metrics", requiredRole("read", getMetrics), async ({ rota }, reply) => {
    reply.type("text/plain; version=0.0.4; charset=utf-8");
    return reply.send(await rota.metrics());
  });
};
