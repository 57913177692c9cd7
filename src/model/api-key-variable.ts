import { shownVariable } from "./executor-program.ts";

export type FoundApiKey =
  | { readonly ok: true; readonly apiKey: string }
  | { readonly ok: false; readonly fault: string };

/** Reads the key from the variable that the option `field` names. The fault does not repeat it. */
export function findApiKey(
  variable: string,
  environment: Readonly<Record<string, string | undefined>>,
  field: string,
): FoundApiKey {
  const value = environment[variable];
  // A key that was read from a file often ends with a line break.
  const apiKey = typeof value === "string" ? value.trim() : "";
  const names = `\`${field}\` names the variable ${shownVariable(variable)}`;
  if (apiKey === "") {
    const fault = `${names}, which is not set: set it, or leave \`apiKeyEnv\` out if no key is needed`;
    return { ok: false, fault };
  }
  if (/^[\x21-\x7e]+$/.test(apiKey)) return { ok: true, apiKey };
  return {
    ok: false,
    fault: `${names}, which holds no key: it has spaces, line breaks or letters beyond ASCII in it`,
  };
}
