import { invalidField, quoted } from "./field-checks.ts";

/** Infinity is valid and means no timeout. A timer for a value that is no number would fire at once, or never. */
export function checkWait({ timeoutMs }: { readonly timeoutMs?: unknown }): void {
  if (timeoutMs === undefined || (typeof timeoutMs === "number" && timeoutMs > 0)) return;
  throw invalidField(
    "timeoutMs",
    `\`timeoutMs\` must be a number of milliseconds above 0, not ${quoted(timeoutMs)}`,
  );
}

/** The error of a `wait` that timed out: the same in this process and over HTTP. */
export function waitedInVain(timeoutMs: number): DOMException {
  return new DOMException(`the task had not ended after ${timeoutMs} ms`, "TimeoutError");
}
