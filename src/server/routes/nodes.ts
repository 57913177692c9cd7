import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { listNodes } from "../../api/nodes.ts";
import type { RouteParts } from "../route-parts.ts";
import { requiredRole } from "./required-role.ts";

/** The processes that run tasks. */
export const nodeRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { installation: { nodes } }) => {
  app.get("/nodes", requiredRole("administer", listNodes), async () => nodes.list());
};
