import { z } from "zod";
import { errorAnswers } from "./error.ts";

const root = z
  .strictObject({
    name: z.literal("rota"),
    version: z.string(),
    links: z.record(z.string(), z.string()).describe("The main routes, by name."),
  })
  .meta({
    id: "Root",
    description: "The name of the server, and links to its main routes.",
    examples: [{ name: "rota", version: "0.1.0", links: { tasks: "/tasks", openapi: "/openapi.json" } }],
  });

export const getRoot = {
  operationId: "getRoot",
  tags: ["node"],
  summary: "List the main routes",
  description: "The name and version of the server, and links, for people who open its address.",
  response: { 200: root, ...errorAnswers() },
};
