import { echo } from "./echo.ts";
import type { Executor, ExecutorConfig } from "./executor.ts";
import { httpExecutor } from "./http.ts";

/** The executor that a configuration describes; a function is one already. */
export function createExecutor(
  config: Executor | ExecutorConfig,
  { now }: { readonly now: () => number },
): Executor {
  if (typeof config === "function") return config;
  switch (config.type) {
    case "echo":
      return echo;
    case "http":
      return httpExecutor({ ...config, now });
  }
}
