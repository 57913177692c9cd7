import { Command } from "commander";
import { doctorLines } from "./doctor-lines.ts";
import { print, printJson } from "./print.ts";
import { openClient, type ServerFlags, withServerOptions } from "./server-options.ts";

/** `rota doctor`: looks for what cannot be. */
export function doctorCommand(): Command {
  const command = new Command("doctor").description(
    "Look for what cannot be: moments of schedules that left no run, counters that are off, clocks that disagree.",
  );
  return withServerOptions(command).action(async (flags: ServerFlags) => {
    const report = await openClient(flags).doctor();
    if (flags.json) printJson(report);
    else for (const line of doctorLines(report)) print(line);
    if (!report.ok) process.exitCode = 1;
  });
}
