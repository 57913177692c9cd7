import { optionalBoolean } from "../../model/input/field-checks.ts";

/** Query values are text. Text that is not a number stays as it is, and the library refuses it. */
export function toNumber(text: unknown): unknown {
  return typeof text === "string" && /^-?\d{1,15}$/.test(text) ? Number(text) : text;
}

/** Converts the named fields of a query to numbers. */
export function withNumbers<Query extends object>(
  query: Query,
  ...names: (keyof Query)[]
): { [Name in keyof Query]?: unknown } {
  const numbers = names.filter((name) => query[name] !== undefined);
  return { ...query, ...Object.fromEntries(numbers.map((name) => [name, toNumber(query[name])])) };
}

/** The same for `true` and `false`. */
export function toBoolean(text: unknown): unknown {
  return text === "true" || text === "false" ? text === "true" : text;
}

/** The number of a schedule or a run in a path. 0, which no row has, if it is not a number. */
export function toSerialId(text: string): number {
  return /^[1-9]\d{0,15}$/.test(text) ? Number(text) : 0;
}

/** Whether a request is only to be checked. Throws `invalid_field`. */
export function isDryRun({ dryRun }: { readonly dryRun?: string }): boolean {
  return optionalBoolean({ dryRun: toBoolean(dryRun) }, "dryRun") ?? false;
}
