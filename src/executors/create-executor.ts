import type { Clock } from "../model/clock.ts";
import { checkExecutorConfig } from "../model/executor-config.ts";
import type { TargetGuard } from "../outbound/target-guard.ts";
import type { CallOptions } from "./call-out.ts";
import { echo } from "./echo.ts";
import type { Executor, ExecutorConfig } from "./executor.ts";
import { httpExecutor } from "./http.ts";
import { mergeHeaders } from "./merge-headers.ts";
import { PinchTabResolver } from "./pinchtab-resolver.ts";
import { tabActionExecutor } from "./tab-action.ts";
import { fixedResolver, type TabResolver } from "./tab-resolver.ts";

export interface CreateExecutorOptions {
  readonly clock: Clock;
  /** Where the configuration came from a user: what may be called. */
  readonly guard?: TargetGuard;
  /** What the field that holds the configuration is called, for its faults: `executor` unless told. */
  readonly name?: string;
}

/** The executor that a configuration describes; a function is one already. Throws `invalid_field`. */
export function createExecutor(given: Executor | ExecutorConfig, options: CreateExecutorOptions): Executor {
  if (typeof given === "function") return given;
  const config = checkExecutorConfig(given, options.name);
  if (config.type === "echo") return echo;
  const { url } = config;
  const call = { headers: mergeHeaders(config.headers), clock: options.clock, guard: options.guard };
  switch (config.type) {
    case "http":
      return httpExecutor({ ...call, url });
    case "tab-action":
      return tabActionExecutor({ ...call, resolver: resolverOf(config, call) });
  }
}

function resolverOf(
  { url, resolver, cacheSec }: Extract<ExecutorConfig, { type: "tab-action" }>,
  call: CallOptions,
): TabResolver {
  return resolver === "pinchtab" ? new PinchTabResolver({ ...call, url, cacheSec }) : fixedResolver(url);
}

/** Every URL that an executor calls by its configuration: whoever may not call everywhere can check them first. */
export function executorUrls(config: ExecutorConfig): readonly string[] {
  // The instances that a PinchTab server names listen on the same host.
  return config.type === "echo" ? [] : [config.url];
}
