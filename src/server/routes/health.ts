import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { health, ready } from "../../api/health.ts";
import { RotaError } from "../../model/errors.ts";
import type { Rota } from "../../rota-interface.ts";
import { VERSION } from "../version.ts";

/** For whoever watches over the process: whether it lives, and whether it should be sent work. */
export const healthRoutes: FastifyPluginAsyncZod<{ rota: Rota }> = async (app, { rota }) => {
  app.get("/health", { schema: { response: { 200: health } } }, async () => {
    const { storage } = await rota.health();
    return { status: "ok" as const, version: VERSION, state: rota.state, storage };
  });

  app.get("/ready", { schema: { response: { 200: ready } } }, async () => {
    if (rota.state !== "created" && rota.state !== "running") {
      throw new RotaError("draining", "this node is stopping and takes no new work");
    }
    const { storage } = await rota.health();
    if (storage !== "ok") throw new RotaError("storage_unavailable", "the storage does not answer");
    return { status: "ready" as const };
  });
};
