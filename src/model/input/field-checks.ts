import { RotaError } from "../errors.ts";
import { meantName } from "../text/nearest-name.ts";
import { keepOwn } from "../text/own-json.ts";
import { parseRfc3339 } from "../text/rfc3339.ts";

/** Unchecked input of a caller. */
export type Fields = Readonly<Record<string, unknown>>;

/** The error for an invalid field, with its name and what to write instead. */
export function invalidField(field: string, message: string): RotaError {
  return new RotaError("invalid_field", message, { details: { field } });
}

/** Refuses the first unknown key, and suggests the one that was probably meant. */
export function checkKnown(fields: Fields, known: readonly string[], prefix = ""): void {
  for (const key of Object.keys(fields)) {
    if (known.includes(key) || fields[key] === undefined) continue;
    const hint = knownHint(key, known, prefix);
    throw invalidField(`${prefix}${key}`, `unknown field \`${prefix}${preview(key)}\`: ${hint}`);
  }
}

/** The name that was probably meant, else all that there are. */
export function knownHint(name: string, known: readonly string[], prefix = ""): string {
  const nearest = meantName(name, known);
  return nearest === undefined ? `known are ${codeList(known)}` : `did you mean \`${prefix}${nearest}\`?`;
}

/**
 * Input in which null counts as left out: many programs send null for what they do not have. Call it after `checkKnown`, which
 * refuses unknown fields whatever their value. `values`: fields for which null is a value of its own.
 */
export function withoutNulls(fields: Fields, values: readonly string[] = []): Fields {
  const entries = Object.entries(fields);
  if (!entries.some(([, value]) => value === null)) return fields;
  const given = entries.filter(([name, value]) => value !== null || values.includes(name));
  return keepOwn(fields, Object.fromEntries(given));
}

export function checkText(value: unknown, field: string): string {
  if (typeof value === "string") return value;
  if (value === undefined) throw invalidField(field, `\`${field}\` is missing: it must be a string`);
  throw invalidField(field, `\`${field}\` must be a string, not ${kindOf(value)}`);
}

/** Refuses a name with NUL: no database has one, and PostgreSQL refuses the query. */
export function checkName(fields: Fields, field: string, what: string): string | undefined {
  const value = fields[field];
  const name = value === undefined ? undefined : checkText(value, field);
  if (name?.includes("\0")) throw invalidField(field, `\`${field}\` must be ${what}`);
  return name;
}

export function checkFilledText(value: unknown, field: string): string {
  const text = value === undefined ? "" : checkText(value, field);
  if (text.trim() !== "") return text;
  throw invalidField(field, `\`${field}\` must be a string that is not empty`);
}

export function checkBoolean(value: unknown, field: string): boolean {
  if (typeof value === "boolean") return value;
  throw invalidField(field, `\`${field}\` must be true or false, not ${quoted(value)}`);
}

export function optionalBoolean(fields: Fields, field: string): boolean | undefined {
  const value = fields[field];
  return value === undefined ? undefined : checkBoolean(value, field);
}

export function checkObject(value: unknown, field: string): Fields {
  if (isObject(value)) return value;
  throw invalidField(field, `\`${field}\` must be an object, not ${kindOf(value)}`);
}

export function optionalObject(fields: Fields, field: string): Fields | undefined {
  const value = fields[field];
  return value === undefined ? undefined : checkObject(value, field);
}

export interface NumberRange {
  readonly min: number;
  readonly max: number;
  readonly integer?: boolean;
  readonly unit?: string;
  /** The option of the configuration that sets `max`. */
  readonly maxOption?: string;
}

export function checkNumber(value: unknown, field: string, range: NumberRange): number {
  const { min, max, integer = true, unit, maxOption } = range;
  const fits =
    typeof value === "number" && value >= min && value <= max && (!integer || Number.isInteger(value));
  if (fits) return value;
  const what = `${integer ? "an integer" : "a number"}${unit === undefined ? "" : ` of ${unit}`}`;
  const isOver = typeof value === "number" && value > max;
  const raise =
    isOver && maxOption !== undefined ? `: \`${maxOption}\` of the configuration sets the limit` : "";
  throw invalidField(
    field,
    `\`${field}\` must be ${what} from ${min} to ${max}, not ${quoted(value)}${raise}`,
  );
}

export function optionalNumber(
  fields: Fields,
  field: string,
  range: NumberRange,
  prefix = "",
): number | undefined {
  const value = fields[field];
  return value === undefined ? undefined : checkNumber(value, `${prefix}${field}`, range);
}

/** A time in milliseconds since 1970. */
export function checkMoment(value: unknown, field: string): number {
  // As JSON a Date is the text of the same time, or null if it is invalid.
  const text = value instanceof Date ? value.toJSON() : value;
  const moment = typeof text === "string" ? parseRfc3339(text) : null;
  if (moment !== null) return moment;
  const example = "2030-01-31T09:00:00Z";
  throw invalidField(
    field,
    `\`${field}\` must be a time like "${example}" (RFC 3339 with a zone, years 0000 to 9999 of UTC), not ${quoted(value)}`,
  );
}

export function isObject(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function codeList(names: readonly string[]): string {
  return names.map((name) => `\`${name}\``).join(", ");
}

/** `a, b or c`. */
export function joinWithOr(choices: readonly string[]): string {
  return choices.join(", ").replace(/, ([^,]*)$/, " or $1");
}

function kindOf(value: unknown): string {
  if (value == null) return String(value);
  if (Array.isArray(value)) return "an array";
  return aTypeOf(value);
}

/** The type of a value with its article. Safe for any value: `typeof` runs no code of it. */
export function aTypeOf(value: unknown): string {
  return /^[aeiou]/.test(typeof value) ? `an ${typeof value}` : `a ${typeof value}`;
}

const SHOWN_LENGTH_MAX = 60;

/** A value, cut short, for an error message. */
export function preview(value: unknown): string {
  if (typeof value === "object" && value !== null && !(value instanceof Date)) return kindOf(value);
  const text = typeof value === "string" ? value : String(value);
  const cut = text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}…` : text;
  return typeof value === "string" ? JSON.stringify(cut).slice(1, -1) : cut;
}

/** The same with quotes around a text, so that "5" is not taken for 5. */
export function quoted(value: unknown): string {
  return typeof value === "string" ? `"${preview(value)}"` : preview(value);
}

/** The end of a sentence about an expected value: the value that was there instead, if there was one. */
export function insteadOf(value: unknown): string {
  return value === undefined ? "" : `, not ${quoted(value)}`;
}
