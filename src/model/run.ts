/** `skipped` and `missed` runs never started. */
export const RUN_STATUSES = ["running", "succeeded", "failed", "skipped", "missed"] as const;
export type RunStatus = (typeof RUN_STATUSES)[number];

/** How many runs of one schedule may wait, their tasks neither running nor ended; a due time beyond that is skipped. */
export const WAITING_RUNS_MAX = 100;
/**
 * How many due times of a schedule that are skipped in a row, for the same reason, have rows of their own. Later ones share the
 * last row. A schedule that is due every second and whose run takes a day would have 86 400 rows.
 */
export const SKIPPED_ROWS_MAX = 10;
/** The reason of a due time that was skipped because `WAITING_RUNS_MAX` runs wait. */
export const TOO_MANY_WAITING = "too_many_waiting";
/** The reason of a run that was cancelled in favour of the next one. */
export const REPLACED = "replaced";

/** The largest result summary of a run, in UTF-8. */
export const SUMMARY_BYTES_MAX = 4_096;
/** The end of a summary that is not the whole result. */
const TRUNCATED = "[truncated]";

/**
 * The summary of a result: a text as it is, anything else as JSON, cut to what fits and then ending in `[truncated]`. Undefined:
 * there is no result. Characters that not every database can store are replaced.
 */
export function runSummary(result: unknown): string | undefined {
  if (result === null || result === undefined) return undefined;
  const text = typeof result === "string" ? result : (JSON.stringify(result) ?? "");
  // Every code unit takes at least one byte, so that the rest would be cut in any case.
  const clean = text
    .slice(0, SUMMARY_BYTES_MAX + 1)
    .toWellFormed()
    .replaceAll("\0", "\u{fffd}");
  const { read } = encoder.encodeInto(clean, new Uint8Array(SUMMARY_BYTES_MAX));
  if (read === clean.length) return clean;
  const { read: kept } = encoder.encodeInto(clean, new Uint8Array(SUMMARY_BYTES_MAX - TRUNCATED.length));
  return `${clean.slice(0, kept)}${TRUNCATED}`;
}

/** `encodeInto` stops before a character that does not fit as a whole. */
const encoder = new TextEncoder();
