const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$/;
/** Numbers that are different each time. */
const MEASURED = ["latencyMs", "executionTimeMs", "avgDispatchLatencyMs"];
/** Times in seconds, where 0 stands for never. */
const SECONDS = /_at$|^at$|^timestamp$/;
/** Times as writs show them. */
const MINUTE = /\d{4}-\d{2}-\d{2} \d{2}:\d{2}/g;

/**
 * Whether an answer is the one a page shows: the same keys and values, but for times, what was measured, and texts that
 * the page cuts short with "…".
 */
export function isSameShape(shown: unknown, actual: unknown, key = ""): boolean {
  if (typeof shown === "string" && typeof actual === "string") {
    if (shown.endsWith("…")) return actual.startsWith(shown.slice(0, -1));
    if (TIME.test(shown) && TIME.test(actual)) return true;
    return shown.replaceAll(MINUTE, "") === actual.replaceAll(MINUTE, "");
  }
  if (MEASURED.includes(key)) return typeof shown === "number" && typeof actual === "number";
  if (SECONDS.test(key)) return typeof actual === "number" && (shown === 0) === (actual === 0);
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

/** The same for a text, line by line; what a line of an event stream says after `data:` is JSON. */
export function isSameText(shown: string, actual: string): boolean {
  const lines = actual.trim().split("\n");
  const wanted = shown.trim().split("\n");
  return (
    wanted.length === lines.length && wanted.every((line, index) => isSameLine(line, lines[index] ?? ""))
  );
}

function isSameLine(shown: string, actual: string): boolean {
  const prefix = "data: ";
  if (!shown.startsWith(prefix) || !actual.startsWith(prefix)) return isSameShape(shown, actual);
  return isSameShape(JSON.parse(shown.slice(prefix.length)), JSON.parse(actual.slice(prefix.length)));
}
