import { Command } from "commander";
import type { SchedulesStatus } from "../../client/index.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { print, printJson } from "../terminal/print.ts";
import { sheetLines } from "../views/sheet.ts";
import { shownDue } from "../views/times.ts";
import { zonedText } from "../views/zoned-text.ts";

/** `rota schedules status`: the number of schedules, and the next due time. */
export function statusCommand(): Command {
  const command = new Command("status").description("Count schedules, and show the next due time.");
  return withServerOptions(command).action(async (flags: ServerFlags) => {
    const status = await openClient(flags).schedules.status();
    if (flags.json) printJson(status);
    else for (const line of statusLines(status, Date.now())) print(line);
  });
}

function statusLines({ active, paused, running, next_fire_at }: SchedulesStatus, now: number): string[] {
  return sheetLines([
    ["active", String(active)],
    ["paused", String(paused)],
    ["running", `${running} ${running === 1 ? "run" : "runs"}`],
    ["next", next_fire_at === 0 ? "nothing is due" : shownDue(zonedText(next_fire_at * 1_000), now)],
  ]);
}
