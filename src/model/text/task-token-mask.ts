/** What every task token begins with. */
export const TASK_TOKEN_PREFIX = "rtt_";

/** Any task token in a text. */
const TOKENS = /rtt_[\w-]{8,}\.[\w-]{43}/g;

/** The text with every task token masked. */
export function hideTaskTokens(text: string): string {
  return text.includes(TASK_TOKEN_PREFIX) ? text.replaceAll(TOKENS, "…") : text;
}

/** The same at any depth of JSON. */
export function hideTaskTokensIn(value: unknown): unknown {
  if (typeof value === "string") return hideTaskTokens(value);
  if (typeof value !== "object" || value === null) return value;
  // Almost no value has one: only such a value is copied.
  if (!JSON.stringify(value).includes(TASK_TOKEN_PREFIX)) return value;
  if (Array.isArray(value)) return value.map(hideTaskTokensIn);
  const entries = Object.entries(value).map(([name, inner]) => [
    hideTaskTokens(name),
    hideTaskTokensIn(inner),
  ]);
  return Object.fromEntries(entries);
}
