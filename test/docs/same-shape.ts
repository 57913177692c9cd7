const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;
/** Numbers that are different each time. */
const MEASURED = ["latencyMs", "executionTimeMs"];

/**
 * Whether an answer is the one a page shows: the same keys and values, but for times, what was measured, and texts that
 * the page cuts short with "…".
 */
export function isSameShape(shown: unknown, actual: unknown, key = ""): boolean {
  if (typeof shown === "string" && typeof actual === "string") {
    if (shown.endsWith("…")) return actual.startsWith(shown.slice(0, -1));
    return shown === actual || (TIME.test(shown) && TIME.test(actual));
  }
  if (MEASURED.includes(key)) return typeof shown === "number" && typeof actual === "number";
  if (typeof shown !== "object" || shown === null) return shown === actual;
  if (typeof actual !== "object" || actual === null || Array.isArray(shown) !== Array.isArray(actual))
    return false;
  const keys = Object.keys(shown);
  return (
    keys.join() === Object.keys(actual).join() &&
    keys.every((name) =>
      isSameShape((shown as Record<string, unknown>)[name], (actual as Record<string, unknown>)[name], name),
    )
  );
}
