import { Command } from "commander";
import { editCommand } from "./schedules-edit.ts";
import { listCommand } from "./schedules-list.ts";
import { deleteCommand, pauseCommand, resumeCommand } from "./schedules-orders.ts";
import { previewCommand } from "./schedules-preview.ts";
import { runCommand } from "./schedules-run.ts";
import { showCommand } from "./schedules-show.ts";
import { statusCommand } from "./schedules-status.ts";
import { upcomingCommand } from "./schedules-upcoming.ts";

/** `rota schedules`: lists schedules, or changes one. */
export function schedulesCommand(): Command {
  return new Command("schedules")
    .description("List schedules, or show, change, pause, resume, run, delete and preview them.")
    .addCommand(listCommand(), { isDefault: true })
    .addCommand(showCommand())
    .addCommand(editCommand())
    .addCommand(pauseCommand())
    .addCommand(resumeCommand())
    .addCommand(runCommand())
    .addCommand(deleteCommand())
    .addCommand(statusCommand())
    .addCommand(upcomingCommand())
    .addCommand(previewCommand());
}
