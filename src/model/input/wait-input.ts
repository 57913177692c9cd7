import { invalidField, quoted } from "./field-checks.ts";

/** Infinity is a fine way to say that there is no hurry; what is no number would fire at once, or never. */
export function checkWait({ timeoutMs }: { readonly timeoutMs?: unknown }): void {
  if (timeoutMs === undefined || (typeof timeoutMs === "number" && timeoutMs > 0)) return;
  throw invalidField(
    "timeoutMs",
    `\`timeoutMs\` must be a number of milliseconds above 0, not ${quoted(timeoutMs)}`,
  );
}

/** What whoever waits is told when it takes too long: the same in this process and over HTTP. */
export function waitedInVain(timeoutMs: number): DOMException {
  return new DOMException(`the task had not ended after ${timeoutMs} ms`, "TimeoutError");
}
