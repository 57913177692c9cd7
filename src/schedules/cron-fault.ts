import { preview } from "../model/input/field-checks.ts";
import { isCron } from "./cron.ts";

interface CronField {
  readonly name: string;
  readonly takes: string;
}

const SECOND: CronField = { name: "second", takes: "0 to 59" };
const FIELDS: readonly CronField[] = [
  { name: "minute", takes: "0 to 59" },
  { name: "hour", takes: "0 to 23" },
  { name: "day of the month", takes: "1 to 31, L for the last, 15W for the weekday nearest to the 15th" },
  { name: "month", takes: "1 to 12 or JAN to DEC" },
  {
    name: "weekday",
    takes: "0 to 7 (0 and 7 are Sunday) or SUN to SAT, 5L for the last Friday, 5#2 for the second",
  },
];

/**
 * What is wrong with an invalid cron expression of 5 or 6 fields. croner's own messages name its internals and count some
 * fields from 0, so each field is checked on its own.
 */
export function cronFault(expr: string): string {
  const given = expr.split(" ");
  const fields = given.length === 6 ? [SECOND, ...FIELDS] : FIELDS;
  const wrong = fields.findIndex((_field, at) => !isCron(alone(given, at)));
  const { name, takes } = fields[wrong] ?? {};
  if (name === undefined) return "its fields do not go together";
  return `the ${name} "${preview(given[wrong])}" takes ${takes}, and lists like 1,5, ranges like 1-5 and steps like */5`;
}

/** The expression with `*` in all other fields. */
function alone(given: readonly string[], at: number): string {
  return given.map((value, index) => (index === at ? value : "*")).join(" ");
}
