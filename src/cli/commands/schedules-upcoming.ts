import { Command } from "commander";
import type { UpcomingFilter, UpcomingMoment } from "../../client/index.ts";
import { momentFlag, numberFlag } from "../flags/flag-values.ts";
import { given } from "../flags/given.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { oneLine } from "../terminal/display-text.ts";
import { lineWidth, print, printJson } from "../terminal/print.ts";
import { tableLines } from "../views/table.ts";
import { shownDue } from "../views/times.ts";
import { zonedText } from "../views/zoned-text.ts";

interface UpcomingFlags extends ServerFlags {
  readonly from?: string;
  readonly to?: string;
  readonly limit?: string;
  readonly perSchedule?: string;
}

/** `rota schedules upcoming`: the next due times of all schedules. */
export function upcomingCommand(): Command {
  const command = new Command("upcoming")
    .description("List the next due times of all active schedules, earliest first.")
    .option("--from <time>", "not before: 2030-01-31T09:00:00Z, or a span from now: 2d (default: now)")
    .option("--to <time>", "not after (default: 7 days after --from)")
    .option("--limit <number>", "how many, 2000 at most (default: 100)")
    .option("--per-schedule <number>", "how many of one schedule (default: any number)");
  return withServerOptions(command).action(async (flags: UpcomingFlags) => {
    const { from, to, limit, perSchedule, json } = flags;
    const filter = given({
      from: from === undefined ? undefined : momentFlag(from, Date.now()),
      to: to === undefined ? undefined : momentFlag(to, Date.now()),
      limit: limit === undefined ? undefined : numberFlag(limit),
      per_schedule: perSchedule === undefined ? undefined : numberFlag(perSchedule),
    });
    const upcoming = await openClient(flags).schedules.upcoming(filter as UpcomingFilter);
    if (json) return printJson(upcoming);
    const { moments, truncated } = upcoming;
    if (moments.length === 0) return print("No schedule is due in that time.");
    for (const line of momentsTable(moments, Date.now())) print(line);
    if (truncated) print("There are more: raise --limit, or continue with --from.");
  });
}

function momentsTable(moments: readonly UpcomingMoment[], now: number): string[] {
  return tableLines(
    [
      { title: "DUE" },
      { title: "SCHEDULE", align: "right" },
      { title: "NAME", shrinksTo: 8 },
      { title: "AGENT", shrinksTo: 8 },
    ],
    moments.map(({ schedule_id, name, agent, at, zone }) => [
      shownDue(zonedText(at * 1_000, zone), now),
      String(schedule_id),
      oneLine(name ?? "–"),
      oneLine(agent),
    ]),
    { width: lineWidth() },
  );
}
