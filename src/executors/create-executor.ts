import type { Clock } from "../model/clock.ts";
import { checkExecutorConfig } from "../model/executor-config.ts";
import { echo } from "./echo.ts";
import type { Executor, ExecutorConfig } from "./executor.ts";
import { httpExecutor } from "./http.ts";
import { mergeHeaders } from "./merge-headers.ts";
import { PinchTabResolver } from "./pinchtab-resolver.ts";
import { tabActionExecutor } from "./tab-action.ts";
import { fixedResolver } from "./tab-resolver.ts";

export interface CreateExecutorOptions {
  readonly clock: Clock;
  /** What the field that holds the configuration is called, for its faults: `executor` unless told. */
  readonly name?: string;
}

/** The executor that a configuration describes; a function is one already. Throws `invalid_field`. */
export function createExecutor(given: Executor | ExecutorConfig, options: CreateExecutorOptions): Executor {
  if (typeof given === "function") return given;
  const { clock, name } = options;
  const config = checkExecutorConfig(given, name);
  if (config.type === "echo") return echo;
  const { url } = config;
  const headers = mergeHeaders(config.headers);
  switch (config.type) {
    case "http":
      return httpExecutor({ url, headers, clock });
    case "tab-action": {
      const { cacheSec } = config;
      const resolver =
        config.resolver === "pinchtab"
          ? new PinchTabResolver({ url, headers, cacheSec, clock })
          : fixedResolver(url);
      return tabActionExecutor({ resolver, headers, clock });
    }
  }
}

/** Every URL that an executor calls by its configuration: whoever may not call everywhere can check them first. */
export function executorUrls(config: ExecutorConfig): readonly string[] {
  // The instances that a PinchTab server names listen on the same host.
  return config.type === "echo" ? [] : [config.url];
}
