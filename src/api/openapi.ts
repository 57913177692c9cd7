import { z } from "zod";
import { errorAnswers } from "./error.ts";

export const openApiDocument = z
  .looseObject({ openapi: z.string(), info: z.looseObject({ title: z.string(), version: z.string() }) })
  .meta({
    id: "OpenApi",
    description: "An OpenAPI 3.1 document.",
    examples: [{ openapi: "3.1.0", info: { title: "Rota", version: "0.1.0" }, paths: {} }],
  });

export const getOpenApi = {
  operationId: "getOpenApi",
  tags: ["node"],
  summary: "Get this description",
  description: "Every route with its requests and responses, as OpenAPI 3.1.",
  response: { 200: openApiDocument, ...errorAnswers() },
};
