import { PRIORITY_MAX, PRIORITY_MIN, PRIORITY_NAMES, type PriorityName } from "../priority.ts";
import { type Fields, invalidField, optionalNumber } from "./field-checks.ts";

/** Parses a priority, an integer or a name, to its number. Throws `invalid_field`. */
export function optionalPriority(fields: Fields): number | undefined {
  const priority = fields["priority"];
  if (priority === undefined) return undefined;
  if (typeof priority === "string" && Object.hasOwn(PRIORITY_NAMES, priority)) {
    return PRIORITY_NAMES[priority as PriorityName];
  }
  if (typeof priority !== "number" || !Number.isInteger(priority)) {
    const names = Object.keys(PRIORITY_NAMES).join(", ");
    throw invalidField("priority", `\`priority\` must be an integer, lower first, or one of ${names}`);
  }
  return optionalNumber(fields, "priority", { min: PRIORITY_MIN, max: PRIORITY_MAX });
}
