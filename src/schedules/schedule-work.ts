import { codeList, type Fields, invalidField, requiredText } from "../model/input/field-checks.ts";
import { TASK_BYTES_MAX } from "../model/input/task-input.ts";
import { jsonValue } from "../model/json-value.ts";
import type { ScheduleWork } from "../model/schedule.ts";

/** The fields for the work of a schedule. Exactly one of them is set. */
export const WORK_FIELDS = ["message", "instruction", "payload"] as const;

const ONE_OF = `a schedule needs exactly one of ${codeList(WORK_FIELDS)}`;

/** The work of a new schedule. Null counts as left out, except for `payload`, which may be any JSON. */
export function requiredWork(given: Fields): ScheduleWork {
  const { payload } = given;
  const work = workOf(given, payload === undefined ? [] : ["payload"]);
  if (work === null) throw invalidField("message", `${ONE_OF}; there is none`);
  return work;
}

/** The new work of a schedule, of any kind; undefined: unchanged. */
export function optionalWork(given: Fields): ScheduleWork | undefined {
  const { payload = null } = given;
  const work = workOf(given, payload === null ? [] : ["payload"]);
  if (work !== null) return work;
  const taken = WORK_FIELDS.find((field) => given[field] === null);
  if (taken === undefined) return undefined;
  throw invalidField(taken, `${ONE_OF}, and \`${taken}\` cannot be null alone: give what takes its place`);
}

/** Null: there is none. */
function workOf(given: Fields, payloads: readonly "payload"[]): ScheduleWork | null {
  const texts = (["message", "instruction"] as const).filter((field) => (given[field] ?? null) !== null);
  const found = [...texts, ...payloads];
  const [field, second] = found;
  if (second !== undefined) throw invalidField(second, `${ONE_OF}; there are ${codeList(found)}`);
  switch (field) {
    case "message":
      return { kind: "message", message: readText(given, field) };
    case "instruction":
      return { kind: "instruction", instruction: readText(given, field) };
    case "payload":
      return { kind: "custom", payload: jsonValue(given, field) };
    default:
      return null;
  }
}

/** The limit is that of a task, since each run submits the text as a task. */
function readText(given: Fields, field: "message" | "instruction"): string {
  const text = requiredText(given, field);
  if (text.includes("\0") || !text.isWellFormed()) {
    throw invalidField(field, `\`${field}\` must be text without NUL and without halves of characters`);
  }
  if (Buffer.byteLength(JSON.stringify(text)) > TASK_BYTES_MAX) {
    throw invalidField(field, `\`${field}\` must take ${TASK_BYTES_MAX} bytes of JSON at most`);
  }
  return text;
}
