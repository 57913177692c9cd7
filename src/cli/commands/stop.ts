import { Command } from "commander";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { printStopped } from "../views/stopped-lines.ts";

interface StopFlags extends ServerFlags {
  readonly all?: boolean;
  readonly reset?: boolean;
}

/** `rota stop KEY`: stops the running task of a session, or all of its tasks. */
export function stopCommand(): Command {
  const command = new Command("stop")
    .description("Stop the running task of a session.")
    .argument("<key>", "the session")
    .option(
      "--all",
      "everything that runs or waits in it, not only what runs longest, or waits first if none runs",
    )
    .option("--reset", "everything, and start a new conversation");
  return withServerOptions(command).action(async (key: string, flags: StopFlags) => {
    const { sessions } = openClient(flags);
    if (flags.reset) return printStopped(await sessions.reset(key), flags);
    printStopped(await (flags.all ? sessions.stopAll(key) : sessions.stop(key)), flags);
  });
}
