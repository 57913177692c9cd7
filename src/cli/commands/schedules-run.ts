import { Command } from "commander";
import type { RunAnswer } from "../../client/index.ts";
import { serialId } from "../flags/serial-id.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { print, printJson } from "../terminal/print.ts";

interface RunFlags extends ServerFlags {
  readonly ifDue?: boolean;
}

/** `rota schedules run ID`: runs a schedule now, besides its due times. */
export function runCommand(): Command {
  const command = new Command("run")
    .description("Run a schedule now, also one that is paused or over; when it is due next stays the same.")
    .argument("<id>", "the schedule's number")
    .option("--if-due", "only if one of its due times has passed");
  return withServerOptions(command).action(async (text: string, flags: RunFlags) => {
    const id = serialId("schedule", text);
    const answer = await openClient(flags).schedules.run(id, { mode: flags.ifDue ? "due" : "force" });
    if (flags.json) printJson(answer);
    else print(`#${id} ${outcome(answer)}`);
  });
}

function outcome({ ran, reason, run_id }: RunAnswer): string {
  if (ran) return `started: see "rota runs show ${run_id}"`;
  if (reason === "not-due") return "did not run: it is not due";
  if (reason === "too_many_waiting") return "did not run: too many of its runs are waiting";
  return "did not run: its previous run has not ended";
}
