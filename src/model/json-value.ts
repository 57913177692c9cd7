import { aTypeOf, type Fields, invalidField } from "./input/field-checks.ts";
import { JSON_DEPTH_MAX, TASK_BYTES_MAX } from "./input/task-input.ts";
import { isDeeperThan } from "./text/json-depth.ts";
import { rememberText } from "./text/json-text.ts";
import { ownLength } from "./text/own-json.ts";
import { utf8Length } from "./text/utf8-length.ts";

/**
 * A copy of a field as JSON, so that the caller cannot change it later. Not copied if the value was parsed by Rota itself. Throws
 * `invalid_field` for values that JSON cannot hold.
 */
export function jsonValue(fields: Fields, field: string): unknown {
  const value = fields[field];
  const text = stringify(value, field);
  if (text === undefined) throw invalidField(field, `\`${field}\` is not JSON: it is ${aTypeOf(value)}`);
  if (utf8Length(text) > TASK_BYTES_MAX) {
    throw invalidField(
      field,
      `\`${field}\` must take ${TASK_BYTES_MAX} bytes of JSON at most: store large data elsewhere, and send a reference to it`,
    );
  }
  if (ownLength(fields) === undefined && isDeeperThan(JSON_DEPTH_MAX, text)) throw tooDeep(field);
  const kept: unknown = ownLength(fields) === undefined ? JSON.parse(text) : value;
  rememberText(kept, text);
  return kept;
}

function stringify(value: unknown, field: string): string | undefined {
  try {
    return JSON.stringify(value);
  } catch (error) {
    // The stack overflowed before there was a text to measure.
    if (error instanceof RangeError) throw tooDeep(field);
    const [line] = String(error instanceof Error ? error.message : error).split("\n", 1);
    throw invalidField(field, `\`${field}\` is not JSON: ${line}`);
  }
}

function tooDeep(field: string): Error {
  return invalidField(field, `\`${field}\` is nested deeper than ${JSON_DEPTH_MAX} levels: flatten it`);
}
