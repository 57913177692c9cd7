import { isLaneName, LANE_NAME_FORM, LANE_RANGES, type Lane } from "../lane.ts";
import { insteadOf, invalidField, isObject, quoted } from "./field-checks.ts";
import { number } from "./kinds.ts";
import { readFields } from "./read-fields.ts";
import { optional, required, type Schema } from "./schema.ts";

const { concurrency, total } = LANE_RANGES;

/** The settings of a lane. */
export const LANE = {
  name: "LaneSettings",
  noun: "lane",
  description: "The limits of a lane.",
  fields: {
    concurrency: required(number(concurrency), {
      description: "How many of its tasks each process runs at once; 0: none.",
      flag: "--concurrency <number>",
      missing: `is missing: it must be an integer from ${concurrency.min} to ${concurrency.max}`,
    }),
    total: optional(number(total), {
      description: "How many run at once over all nodes.",
      default: "no limit beyond the sum of the processes",
      flag: "--total <number>",
    }),
  },
  examples: [{ concurrency: 5, total: 20 }, { concurrency: 10 }],
} as const satisfies Schema;

/** Parses the settings of a lane. Throws `invalid_field`. */
export function parseLaneInput(name: unknown, input: unknown): Pick<Lane, "name" | "concurrency" | "total"> {
  if (!isLaneName(name)) {
    throw invalidField("name", `the name of a lane is ${LANE_NAME_FORM}; this is ${quoted(name)}`);
  }
  if (!isObject(input)) {
    throw invalidField("lane", `a lane must be an object, like {"concurrency": 5}${insteadOf(input)}`);
  }
  return { name, total: null, ...readFields(LANE, input) };
}
