import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { getConfig } from "../../api/config.ts";
import { masked } from "../../config/masked.ts";
import type { RouteParts } from "../route-parts.ts";
import { requiredRole } from "./required-role.ts";

/** The configuration in force, with secrets masked. */
export const configRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { config }) => {
  app.get("/config", requiredRole("administer", getConfig), async () => ({ ...masked(config()) }));
};
