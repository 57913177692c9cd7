import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { getOpenApi } from "../../api/openapi.ts";
import type { RouteParts } from "../routes.ts";
import { may } from "./may.ts";

/** The description of all routes. What makes it is loaded when somebody asks, so that every start is faster. */
export const openApiRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, parts) => {
  app.get("/openapi.json", may("known", getOpenApi), async () => {
    const { describeApi } = await import("../openapi.ts");
    return describeApi(parts);
  });
};
