import { Command } from "commander";
import type { RotaClient, ScheduledTask } from "../../client/index.ts";
import { serialId } from "../flags/serial-id.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { print, printJson } from "../terminal/print.ts";
import { nextMoments } from "../views/next-moments.ts";
import { scheduleSheet } from "../views/schedule-sheet.ts";

/** `rota schedules show ID`: all fields of one schedule, and its next due times. */
export function showCommand(): Command {
  const command = new Command("show")
    .alias("get")
    .description("Show one schedule, and its next due times.")
    .argument("<id>", "the schedule's number");
  return withServerOptions(command).action(async (id: string, flags: ServerFlags) => {
    const rota = openClient(flags);
    await printSchedule(rota, await rota.schedules.get(serialId("schedule", id)), flags);
  });
}

export async function printSchedule(
  rota: RotaClient,
  schedule: ScheduledTask,
  { json }: ServerFlags,
): Promise<void> {
  if (json) return printJson({ scheduled_task: schedule });
  const next = await nextMoments(schedule, rota.schedules);
  for (const line of scheduleSheet(schedule, { next, now: Date.now() })) print(line);
}
