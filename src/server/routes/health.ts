import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { health, ready } from "../../api/health.ts";
import type { Rota } from "../../interface/rota.ts";
import { RotaError } from "../../model/errors.ts";

/** For whoever watches over the process: whether it lives, and whether it should be sent work. */
export const healthRoutes: FastifyPluginAsyncZod<{ rota: Rota }> = async (app, { rota }) => {
  app.get("/health", { schema: { response: { 200: health } } }, async () => rota.health());

  app.get("/ready", { schema: { response: { 200: ready } } }, async () => {
    if (rota.state !== "created" && rota.state !== "running") {
      throw new RotaError("draining", "this node is stopping and takes no new work");
    }
    const { storage } = await rota.health();
    if (storage !== "ok") throw new RotaError("storage_unavailable", "the storage does not answer");
    return { status: "ready" as const };
  });
};
