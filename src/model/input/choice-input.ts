import { type Fields, invalidField } from "./field-checks.ts";
import { choiceFault } from "./value-faults.ts";

/** One of these names; undefined: left out. */
export function optionalChoice<Choice extends string>(
  fields: Fields,
  field: string,
  choices: readonly Choice[],
): Choice | undefined {
  const value = fields[field];
  if (value === undefined) return undefined;
  const fault = choiceFault(value, choices);
  if (fault !== null) throw invalidField(field, `\`${field}\` must ${fault}`);
  return value as Choice;
}
