/** The wait a `Retry-After` header asks for, in seconds or until a date; undefined when it asks for none. */
export function retryAfterMs(header: string | null, now: number): number | undefined {
  const text = header?.trim() ?? "";
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1_000, Number.MAX_SAFE_INTEGER);
  // Only HTTP's own dates: Date.parse takes almost anything for one.
  if (!/^[A-Z][a-z]+, .*GMT$/.test(text)) return undefined;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(date - now, 0);
}
