import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { getHealth, getReady } from "../../api/health.ts";
import { RotaError } from "../../model/errors.ts";
import type { RouteParts } from "../routes.ts";

/** For whoever watches over the process: whether it lives, and whether it should be sent work. */
export const healthRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { rota }) => {
  app.get("/health", { schema: getHealth }, async () => rota.health());

  app.get("/ready", { schema: getReady }, async () => {
    if (rota.state !== "created" && rota.state !== "running") {
      throw new RotaError("draining", "this node is stopping and takes no new work");
    }
    const { storage } = await rota.health();
    if (storage !== "ok") throw new RotaError("storage_unavailable", "the storage does not answer");
    return { status: "ready" as const };
  });
};
