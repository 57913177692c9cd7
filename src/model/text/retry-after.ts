/** The delay of a `Retry-After` header, which has seconds or a date; undefined: it has neither. */
export function retryAfterMs(header: string | null, now: number): number | undefined {
  const text = header?.trim() ?? "";
  if (/^\d+$/.test(text)) return Math.min(Number(text) * 1_000, Number.MAX_SAFE_INTEGER);
  // Only dates in the format of HTTP: Date.parse accepts almost anything.
  if (!/^[A-Z][a-z]+, .*GMT$/.test(text)) return undefined;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(date - now, 0);
}
