import { Command } from "commander";
import type { DoctorProgress } from "../../interface/doctor.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { print, printJson } from "../terminal/print.ts";
import { doctorLines, progressText } from "../views/doctor-lines.ts";
import { ProgressLine } from "../views/progress-line.ts";

/** `rota doctor`: checks the stored data for contradictions. */
export function doctorCommand(): Command {
  const command = new Command("doctor").description(
    "Check the stored data: due times without a run, wrong counters, changed audit entries, clocks that disagree.",
  );
  return withServerOptions(command).action(async (flags: ServerFlags) => {
    const progress = new ProgressLine(process.stderr);
    // Only on a terminal: a program wants the report, and nothing before it.
    const watched = process.stderr.isTTY
      ? { onProgress: (at: DoctorProgress) => progress.show(progressText(at)) }
      : {};
    const report = await openClient(flags)
      .doctor(watched)
      .finally(() => progress.clear());
    if (flags.json) printJson(report);
    else for (const line of doctorLines(report)) print(line);
    if (!report.ok) process.exitCode = 1;
  });
}
