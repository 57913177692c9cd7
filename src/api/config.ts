import { z } from "zod";
import { errorAnswers } from "./error.ts";

const shownConfig = z.record(z.string(), z.unknown()).meta({
  id: "Config",
  description: "The configuration that is in force, with `…` in place of every secret.",
  examples: [
    {
      server: { host: "127.0.0.1", port: 7682 },
      storage: "postgres://rota:…@db.example.com/rota",
      scheduler: { enabled: true, maxInflight: 20 },
    },
  ],
});

export const getConfig = {
  operationId: "getConfig",
  tags: ["node"],
  summary: "Get the configuration",
  description:
    "The configuration of the responding process: file, variables and flags together, as they were last applied.",
  response: { 200: shownConfig, ...errorAnswers() },
};
