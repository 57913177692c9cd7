import type { ExecutorHeaders } from "../model/executor-config.ts";
import { hideValues } from "../model/text/mask.ts";
import type { Executor } from "./executor.ts";

/** Headers that contain no secrets. */
const HARMLESS: readonly string[] = ["accept", "content-type", "user-agent"];

/**
 * Removes credentials from the errors of an executor. Many servers repeat the headers of a request in their response, and errors
 * of tasks are shown, logged and published.
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

/** Each value as a whole, and each of its words, since a server may repeat only the token of `Bearer …`. */
function secretsIn(values: readonly string[]): string[] {
  return values.flatMap((value) => [value, ...value.split(/\s+/)]).filter((value) => value !== "");
}
