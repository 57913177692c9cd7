import { invalidField, quoted } from "./input/field-checks.ts";

/** Whether a value can be the id of a schedule or a run: integers from 1. */
export function isSerialId(id: unknown): id is number {
  return typeof id === "number" && Number.isSafeInteger(id) && id >= 1;
}

/** The schedule by which a list or a stream is filtered. */
export function checkScheduleId(id: unknown, field: string): number {
  if (isSerialId(id)) return id;
  throw invalidField(
    field,
    `\`${field}\` must be the id of a schedule, an integer from 1 on, not ${quoted(id)}`,
  );
}
