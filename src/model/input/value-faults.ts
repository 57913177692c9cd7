import { meantName } from "../text/nearest-name.ts";
import { insteadOf, isObject, joinWithOr, type NumberRange, quoted } from "./field-checks.ts";

/*
 * Each returns what is wrong with a value, as the rest of "`field` must …"; null: nothing. For tables of fields that are used
 * both for errors and for the schema of the configuration.
 */

/** For one of some names; suggests the one that was probably meant. */
export function choiceFault(value: unknown, choices: readonly string[]): string | null {
  if (typeof value === "string" && choices.includes(value)) return null;
  return `be ${joinWithOr(choices)}${notChoice(value, choices)}`;
}

/** The end of a sentence about an expected name: what was there instead, and the name that was probably meant. */
export function notChoice(value: unknown, choices: readonly string[]): string {
  const nearest = typeof value === "string" ? meantName(value, choices) : undefined;
  return `${insteadOf(value)}${nearest === undefined ? "" : `: did you mean \`${nearest}\`?`}`;
}

export function numberFault(value: unknown, { min, max, integer = false, unit }: NumberRange): string | null {
  const fits = typeof value === "number" && value >= min && value <= max;
  if (fits && (!integer || Number.isInteger(value))) return null;
  const what = `${integer ? "an integer" : "a number"}${unit === undefined ? "" : ` of ${unit}`}`;
  return `be ${what} from ${min} to ${max}, not ${quoted(value)}`;
}

/** For a text that is not empty. Does not repeat it. */
export function textFault(value: unknown): string | null {
  return typeof value === "string" && value.trim() !== "" ? null : "be a string that is not empty";
}

/** For an object that must not have some fields. Does not repeat it. */
export function objectFault(value: unknown, reserved: readonly string[]): string | null {
  if (!isObject(value)) return "be an object";
  const field = reserved.find((name) => Object.hasOwn(value, name));
  return field === undefined ? null : `not have \`${field}\`, which Rota sets itself`;
}
