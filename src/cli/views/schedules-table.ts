import type { ScheduledTask } from "../../client/index.ts";
import { oneLine } from "../terminal/display-text.ts";
import { type State, styled, styledState } from "../terminal/style.ts";
import { messageOrError, nextText, zoneNote } from "./schedule-text.ts";
import { tableLines } from "./table.ts";
import { shownAgo } from "./times.ts";

/** Schedules as a table, in the order given. */
export function schedulesTable(
  schedules: readonly ScheduledTask[],
  { now, width }: { readonly now: number; readonly width: number | undefined },
): string[] {
  const inRed = (text: string) => (text.startsWith("✗") ? styled("red", text) : text);
  return tableLines(
    [
      { title: "ID", align: "right" },
      { title: "STATUS", style: (text) => styledState(text as State) },
      // Shrinks last: columns shrink from the right.
      { title: "NEXT", shrinksTo: 9 },
      { title: "SCHEDULE", shrinksTo: 10 },
      { title: "AGENT", shrinksTo: 6 },
      { title: "LAST RUN" },
      { title: "MESSAGE", shrinksTo: 12, style: inRed },
    ],
    schedules.map((schedule) => [
      String(schedule.id),
      schedule.status,
      nextText(schedule, now),
      oneLine(schedule.schedule_phrase) + zoneNote(schedule),
      oneLine(schedule.agent_id),
      schedule.last_run_at === 0 ? "" : shownAgo(schedule.last_run_at * 1_000, now),
      messageOrError(schedule),
    ]),
    { width },
  );
}
