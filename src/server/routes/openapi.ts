import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import type { z } from "zod";
import { getOpenApi, type openApiDocument } from "../../api/openapi.ts";
import { describeApi } from "../openapi.ts";
import type { RouteParts } from "../route-parts.ts";
import { requiredRole } from "./required-role.ts";

/** The description of all routes. */
export const openApiRoutes: FastifyPluginAsyncZod<RouteParts> = async (app) => {
  app.get("/openapi.json", requiredRole("explore", getOpenApi), async (_request, reply) => {
    // Sends the serialized text, so that the document is not serialized for each request.
    const text: unknown = await describeApi();
    return reply.type("application/json; charset=utf-8").send(text as z.infer<typeof openApiDocument>);
  });
};
