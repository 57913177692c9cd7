import type { ExecutorHeaders } from "../model/executor-config.ts";
import { hideValues } from "../model/text/mask.ts";
import type { Executor } from "./executor.ts";

/** Header fields that say nothing of who is calling. */
const HARMLESS: readonly string[] = ["accept", "content-type", "user-agent"];

/**
 * An executor whose errors do not repeat what it sends to be let in: servers that name the headers of a request in their
 * answer are common, and the errors of tasks are shown, logged and told.
 */
export function hideSecrets(
  executor: Executor,
  { headers, apiKey }: { readonly headers: ExecutorHeaders; readonly apiKey: string | undefined },
): Executor {
  const secrets = secretsIn([...headerValues(headers), apiKey ?? ""]);
  if (secrets.length === 0) return executor;
  return async (task, context) => {
    try {
      return await executor(task, context);
    } catch (error) {
      if (error instanceof Error) error.message = hideValues(error.message, secrets);
      throw error;
    }
  };
}

function headerValues(headers: ExecutorHeaders): string[] {
  return Object.entries(headers)
    .filter(([name]) => !HARMLESS.includes(name.toLowerCase()))
    .map(([, value]) => value);
}

/** Whole, and word by word, since a server may say the token of `Bearer …` alone. */
function secretsIn(values: readonly string[]): string[] {
  return values.flatMap((value) => [value, ...value.split(/\s+/)]).filter((value) => value !== "");
}
