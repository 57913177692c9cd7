import { invalidField, quoted } from "../model/input/field-checks.ts";

/** The position at which a stream resumes. A browser that has seen no event sends no header, and some polyfills an empty one. */
export function parseLastEventId(id: unknown): number | undefined {
  if (id === undefined || id === "") return undefined;
  const number = typeof id === "string" && /^\d{1,16}$/.test(id) ? Number(id) : Number.NaN;
  if (Number.isSafeInteger(number)) return number;
  throw invalidField(
    "Last-Event-ID",
    `\`Last-Event-ID\` must be the \`id\` of an event of this stream, a number, not ${quoted(id)}`,
  );
}
