import type { ExecutorHeaders } from "../model/executor-config.ts";
import type { Executor } from "./executor.ts";

/** What stands where a secret was. */
const MASK = "…";
/** Shorter words are no secrets, and stand in many a sentence. */
const SECRET_LENGTH_MIN = 8;
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
      if (error instanceof Error) error.message = hidden(error.message, secrets);
      throw error;
    }
  };
}

function headerValues(headers: ExecutorHeaders): string[] {
  return Object.entries(headers)
    .filter(([name]) => !HARMLESS.includes(name.toLowerCase()))
    .map(([, value]) => value);
}

/** Whole, and word by word, since a server may say the token of `Bearer …` alone; the longest first. */
function secretsIn(values: readonly string[]): string[] {
  const words = values.flatMap((value) => [value, ...value.split(/\s+/)]);
  return [...new Set(words)]
    .filter((word) => word.length >= SECRET_LENGTH_MIN)
    .sort((a, b) => b.length - a.length);
}

function hidden(text: string, secrets: readonly string[]): string {
  return secrets.reduce((rest, secret) => rest.replaceAll(secret, MASK), text);
}
