import { jsonText } from "../model/json-text.ts";
import type { ScheduleWork } from "../model/schedule.ts";

/** What a schedule hands over, as JSON. A large payload was written as text when it was measured: that is what is stored. */
export function scheduleWorkText(work: ScheduleWork): string {
  if (work.kind !== "custom") return JSON.stringify(work);
  return `{"kind":"custom","payload":${jsonText(work.payload) ?? "null"}}`;
}
