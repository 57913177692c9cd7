import type { ScheduledTask } from "../client/index.ts";
import { oneLine } from "./display-text.ts";
import { shownDue } from "./times.ts";
import { zonedText } from "./zoned-text.ts";

/** A schedule on one line: `#17 every Mon at 09:00, next in 2 h, Mon 09:00 → research`. */
export function scheduleLine(schedule: ScheduledTask, now: number): string {
  const { id, schedule_phrase, schedule_kind, agent_id, status } = schedule;
  const next = nextText(schedule, now);
  const word = schedule_kind === "once" ? "due" : "next";
  return `#${id} ${oneLine(schedule_phrase)}, ${next === "" ? status : `${word} ${next}`} → ${oneLine(agent_id)}`;
}

/** When it is due next, by the clocks of its zone, which is named where those here show another time; empty: never. */
export function nextText({ next_fire_at, tz }: ScheduledTask, now: number): string {
  return next_fire_at === 0 ? "" : dueText(next_fire_at * 1_000, { tz, now });
}

export function dueText(moment: number, { tz, now }: { readonly tz: string; readonly now: number }): string {
  const there = zonedText(moment, tz);
  const zone = there === zonedText(moment) ? "" : ` (${oneLine(tz)})`;
  return `${shownDue(there, now)}${zone}`;
}

/** What it is called and what it says, with what went wrong last in front. */
export function messageOrError({ name, message, last_error }: ScheduledTask): string {
  const error = last_error === null ? null : `✗ ${last_error}`;
  return oneLine([error, name, message].filter((text) => text !== null).join(" · "));
}
