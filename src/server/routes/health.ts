import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { getHealth, getReady } from "../../api/health.ts";
import { RotaError } from "../../model/errors.ts";
import type { RouteParts } from "../route-parts.ts";
import { requiredRole } from "./required-role.ts";

/** For process managers and load balancers: whether the process lives, and whether to send it work. */
export const healthRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { installation }) => {
  app.get("/health", requiredRole("open", getHealth), async () => installation.health());

  app.get("/ready", requiredRole("open", getReady), async () => {
    if (installation.state !== "created" && installation.state !== "running") {
      throw new RotaError("draining", "this node is stopping and accepts no new work");
    }
    const { storageError } = await installation.health();
    if (storageError !== undefined) throw new RotaError("storage_unavailable", storageError);
    return { status: "ready" as const };
  });
};
