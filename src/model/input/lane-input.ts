import { isLaneName, LANE_NAME_FORM, LANE_RANGES, type Lane } from "../lane.ts";
import {
  checkKnown,
  invalidField,
  isObject,
  optionalNumber,
  preview,
  quoted,
  withoutNulls,
} from "./field-checks.ts";

/** Parses the settings of a lane. Throws `invalid_field`. */
export function parseLaneInput(name: unknown, input: unknown): Pick<Lane, "name" | "concurrency" | "total"> {
  if (!isLaneName(name)) {
    throw invalidField("name", `the name of a lane is ${LANE_NAME_FORM}; this is ${quoted(name)}`);
  }
  if (!isObject(input)) {
    throw invalidField("lane", `a lane must be an object, like {"concurrency": 5}, not ${preview(input)}`);
  }
  checkKnown(input, ["concurrency", "total"]);
  const given = withoutNulls(input);
  const concurrency = optionalNumber(given, "concurrency", LANE_RANGES.concurrency);
  if (concurrency === undefined) {
    const { min, max } = LANE_RANGES.concurrency;
    throw invalidField(
      "concurrency",
      `\`concurrency\` is missing: it must be an integer from ${min} to ${max}`,
    );
  }
  return { name, concurrency, total: optionalNumber(given, "total", LANE_RANGES.total) ?? null };
}
