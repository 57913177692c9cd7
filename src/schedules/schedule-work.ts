import { codeList, type Fields, invalidField, joinWithOr } from "../model/input/field-checks.ts";
import { WORK_FIELDS } from "../model/input/schedule-schema.ts";
import type { ReadChangesOf } from "../model/input/schema.ts";
import { TASK_BYTES_MAX } from "../model/input/task-input.ts";
import { jsonValue } from "../model/json-value.ts";
import type { ScheduleWork } from "../model/schedule.ts";

const NAMES = Object.keys(WORK_FIELDS) as (keyof typeof WORK_FIELDS)[];
const ONE_OF = `a schedule needs exactly one of ${codeList(NAMES)}`;

/** The work of a schedule after the checks of its fields. */
type Read = ReadChangesOf<typeof WORK_FIELDS>;

/** The work of a new schedule. `given` is the input as it was submitted. */
export function requiredWork(read: Read, given: Fields): ScheduleWork {
  const work = workOf(read, given, read.payload === undefined ? [] : ["payload"]);
  if (work === null) throw invalidField("message", `${ONE_OF}; there is none`);
  return work;
}

/** The new work of a schedule, of any kind; undefined: unchanged. Null counts as left out. */
export function optionalWork(read: Read, given: Fields): ScheduleWork | undefined {
  const work = workOf(read, given, (read.payload ?? null) === null ? [] : ["payload"]);
  if (work !== null) return work;
  const taken = NAMES.find((field) => read[field] === null);
  if (taken === undefined) return undefined;
  const others = NAMES.filter((field) => field !== taken).map((field) => `\`${field}\``);
  throw invalidField(
    taken,
    `${ONE_OF}: to remove \`${taken}\`, set ${joinWithOr(others)} in the same request`,
  );
}

/** Null: there is none. */
function workOf(read: Read, given: Fields, payloads: readonly "payload"[]): ScheduleWork | null {
  const { message = null, instruction = null } = read;
  const found = [
    ...(message === null ? [] : ["message"]),
    ...(instruction === null ? [] : ["instruction"]),
    ...payloads,
  ];
  const [, second] = found;
  if (second !== undefined) throw invalidField(second, `${ONE_OF}; there are ${codeList(found)}`);
  if (message !== null) return { kind: "message", message: checkSize(message, "message") };
  if (instruction !== null) {
    return { kind: "instruction", instruction: checkSize(instruction, "instruction") };
  }
  return payloads.length === 0 ? null : { kind: "custom", payload: jsonValue(given, "payload") };
}

/** The limit is that of a task, since each run submits the text as a task. */
function checkSize(text: string, field: string): string {
  if (Buffer.byteLength(JSON.stringify(text)) <= TASK_BYTES_MAX) return text;
  throw invalidField(
    field,
    `\`${field}\` must take ${TASK_BYTES_MAX} bytes of JSON at most: store large data elsewhere, and send a reference to it`,
  );
}
