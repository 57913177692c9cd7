import { UsageError } from "../terminal/usage-error.ts";

/** Parses the number of a schedule or a run: `17` or `#17`. Throws a UsageError. */
export function serialId(noun: "schedule" | "run", text: string): number {
  const [, digits] = /^#?([1-9]\d{0,14})$/.exec(text.trim()) ?? [];
  if (digits !== undefined) return Number(digits);
  throw new UsageError(`write the number of the ${noun}, which "rota ${noun}s" lists, not ${text}`);
}
