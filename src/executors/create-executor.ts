import { randomUUID } from "node:crypto";
import { findApiKey } from "../model/api-key-variable.ts";
import type { Clock } from "../model/clock.ts";
import { checkExecutorConfig, type ExecutorType } from "../model/executor-config.ts";
import { invalidField } from "../model/input/field-checks.ts";
import type { TargetGuard } from "../outbound/target-guard.ts";
import type { CallOptions } from "./call-out.ts";
import { chatExecutor } from "./chat.ts";
import { commandExecutor } from "./command.ts";
import { echo } from "./echo.ts";
import { NoExecutorError, noExecutorHere } from "./errors.ts";
import type { Executor, ExecutorConfig } from "./executor.ts";
import { hideSecrets } from "./hide-secrets.ts";
import { httpExecutor } from "./http.ts";
import { mergeHeaders } from "./merge-headers.ts";
import { openAiExecutor } from "./openai.ts";
import { PinchTabResolver } from "./pinchtab-resolver.ts";
import { tabActionExecutor } from "./tab-action.ts";
import { fixedResolver, type TabResolver } from "./tab-resolver.ts";

export interface CreateExecutorOptions {
  readonly clock: Clock;
  /** Which targets are allowed. Present if the configuration came from a user, who may configure less. */
  readonly guard?: TargetGuard | undefined;
  /** The environment variables of this process, secrets included. Programs get only some of them. Default: none. */
  readonly environment?: Environment;
  /** The name of the field with the configuration, for error messages. Default: `executor`. */
  readonly name?: string;
}

type Environment = Readonly<Record<string, string | undefined>>;
type ConfigOf<Type extends ExecutorType> = Extract<ExecutorConfig, { type: Type }>;

/** The executor of a configuration. A function is one already. Throws `invalid_field`. */
export function createExecutor(given: Executor | ExecutorConfig, options: CreateExecutorOptions): Executor {
  if (typeof given === "function") return given;
  const { clock, guard, environment = {}, name = "executor" } = options;
  const config = checkExecutorConfig(given, { name, byUser: guard !== undefined });
  if (config.type === "echo") return echo;
  if (config.type === "worker") return notHere;
  if (config.type === "command") return commandExecutor({ ...config, clock, environment });
  const call = { headers: mergeHeaders(config.headers), clock, guard };
  const apiKey = config.type === "openai" ? apiKeyOf(config, environment, `${name}.apiKeyEnv`) : undefined;
  return hideSecrets(callingExecutor(config, call, apiKey), { headers: call.headers, apiKey });
}

/** Tasks of workers never get here, unless their agent was changed a moment ago. They go back to the queue then. */
const notHere: Executor = async ({ agentId }) => {
  throw new NoExecutorError(noExecutorHere(agentId));
};

function callingExecutor(
  config: Exclude<ExecutorConfig, ConfigOf<"echo" | "worker" | "command">>,
  call: CallOptions,
  apiKey: string | undefined,
): Executor {
  switch (config.type) {
    case "http":
      return httpExecutor({ ...call, url: config.url });
    case "tab-action":
      return tabActionExecutor({ ...call, resolver: resolverOf(config, call) });
    case "chat":
      return chatExecutor({ ...call, url: config.url, newConversationId: randomUUID });
    case "openai":
      return openAiExecutor({ ...call, baseUrl: config.baseUrl, apiKey, settings: config });
  }
}

function resolverOf({ url, resolver, cacheSec }: ConfigOf<"tab-action">, call: CallOptions): TabResolver {
  return resolver === "pinchtab" ? new PinchTabResolver({ ...call, url, cacheSec }) : fixedResolver(url);
}

function apiKeyOf(
  { apiKeyEnv }: ConfigOf<"openai">,
  environment: Environment,
  field: string,
): string | undefined {
  if (apiKeyEnv === undefined) return undefined;
  const found = findApiKey(apiKeyEnv, environment, field);
  if (!found.ok) throw invalidField(field, found.fault);
  return found.apiKey;
}

/** Every URL that the configuration names, so that a caller can check them before it stores the configuration. */
export function executorUrls(config: ExecutorConfig): readonly string[] {
  switch (config.type) {
    case "echo":
    case "worker":
    case "command":
      return [];
    case "openai":
      return [config.baseUrl];
    default:
      // The URLs of PinchTab instances are checked when they are called.
      return [config.url];
  }
}
