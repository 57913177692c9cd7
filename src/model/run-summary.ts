/** The most that the row of a run shows of its result, in UTF-8. */
export const SUMMARY_BYTES_MAX = 4_096;
/** What a summary ends in that is not the whole result. */
const TRUNCATED = "[truncated]";

/**
 * What the row of a run shows of a result, itself JSON: a text as it is, anything else as JSON, as much as fits; what was cut
 * ends in `[truncated]`. Undefined where there is nothing to show. What not every database stores is replaced.
 */
export function runSummary(result: unknown): string | undefined {
  if (result === null || result === undefined) return undefined;
  const text = typeof result === "string" ? result : (JSON.stringify(result) ?? "");
  // Every unit takes a byte at least: what is beyond this is cut in any case.
  const clean = text
    .slice(0, SUMMARY_BYTES_MAX + 1)
    .toWellFormed()
    .replaceAll("\0", "\u{fffd}");
  const { read } = encoder.encodeInto(clean, new Uint8Array(SUMMARY_BYTES_MAX));
  if (read === clean.length) return clean;
  const { read: kept } = encoder.encodeInto(clean, new Uint8Array(SUMMARY_BYTES_MAX - TRUNCATED.length));
  return `${clean.slice(0, kept)}${TRUNCATED}`;
}

/** Stops before a character that does not fit as a whole. */
const encoder = new TextEncoder();
