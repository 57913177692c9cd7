import type { ScheduleWork } from "../model/schedule.ts";
import { jsonText } from "../model/text/json-text.ts";

/** The work of a schedule as JSON. The text of a large payload is cached when it is measured, and stored as it is. */
export function scheduleWorkText(work: ScheduleWork): string {
  if (work.kind !== "custom") return JSON.stringify(work);
  return `{"kind":"custom","payload":${jsonText(work.payload) ?? "null"}}`;
}
