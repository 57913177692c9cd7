import type { ScheduledTask } from "../../client/index.ts";
import { oneLine } from "../terminal/display-text.ts";
import { shownDue } from "./times.ts";
import { zonedText } from "./zoned-text.ts";

/** A schedule on one line: `#17 every Mon at 09:00, next in 2 h, Mon 09:00 → research`. */
export function scheduleLine(schedule: ScheduledTask, now: number): string {
  const { id, schedule_phrase, schedule_kind, agent_id, status } = schedule;
  const next = nextText(schedule, now);
  const when = next === "" ? status : `${schedule_kind === "once" ? "due" : "next"} ${next}`;
  return `#${id} ${oneLine(schedule_phrase)}, ${when}${zoneNote(schedule)} → ${oneLine(agent_id)}`;
}

/** The next due time in its own zone: `in 2 h, Mon 09:00`. Empty: never. */
export function nextText({ next_fire_at, tz }: ScheduledTask, now: number): string {
  return next_fire_at === 0 ? "" : shownDue(zonedText(next_fire_at * 1_000, tz), now);
}

/** The zone, if its clocks differ from those here at the due time, so that the reader does not confuse them. */
export function zoneNote({ next_fire_at, tz }: ScheduledTask): string {
  const moment = next_fire_at * 1_000;
  return moment === 0 || zonedText(moment, tz) === zonedText(moment) ? "" : ` (${oneLine(tz)})`;
}

/** The name and the message, after the last error if there is one. */
export function messageOrError(schedule: ScheduledTask): string {
  const { name, message, instruction, payload, last_error } = schedule;
  const error = last_error === null ? null : `✗ ${last_error}`;
  const work = message ?? instruction ?? JSON.stringify(payload) ?? null;
  return oneLine([error, name, work].filter((text) => text !== null).join(" · "));
}
