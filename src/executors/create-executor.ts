import type { RotaError } from "../model/errors.ts";
import { executorUrlFault } from "../model/executor-url.ts";
import { checkKnown, invalidField, isObject, optionalObject } from "../model/field-checks.ts";
import { nearestName } from "../model/nearest-name.ts";
import { echo } from "./echo.ts";
import type { Executor, ExecutorConfig } from "./executor.ts";
import { httpExecutor } from "./http.ts";

const TYPES: readonly ExecutorConfig["type"][] = ["echo", "http"];

/** The executor that a configuration describes; a function is one already. Throws `invalid_field`. */
export function createExecutor(
  config: Executor | ExecutorConfig,
  { now }: { readonly now: () => number },
): Executor {
  if (typeof config === "function") return config;
  if (!isObject(config))
    throw invalidField("executor", "an executor must be a function or an object with a `type`");
  switch (config.type) {
    case "echo":
      checkKnown(config, ["type"]);
      return echo;
    case "http":
      checkKnown(config, ["type", "url", "headers"]);
      checkUrl(config.url);
      optionalObject(config, "headers");
      return httpExecutor({ ...config, now });
    default:
      throw unknownType((config as { type?: unknown }).type);
  }
}

function checkUrl(url: unknown): void {
  const fault = executorUrlFault(url);
  if (fault !== null) throw invalidField("url", `\`url\` must ${fault}`);
}

function unknownType(type: unknown): RotaError {
  const nearest = nearestName(String(type), TYPES);
  const hint = nearest === undefined ? `known are ${TYPES.join(", ")}` : `did you mean \`${nearest}\`?`;
  return invalidField("type", `unknown executor type "${String(type).slice(0, 60)}": ${hint}`);
}
