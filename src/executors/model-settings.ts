import type { ExecutorConfig } from "../model/executor-config.ts";

/** The settings of a model and of requests to it. */
export type ModelSettings = Omit<
  Extract<ExecutorConfig, { type: "openai" }>,
  "type" | "baseUrl" | "apiKeyEnv" | "headers"
>;
