import { Command } from "commander";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { print } from "../terminal/print.ts";
import { forEachId } from "./each-id.ts";

interface RetryFlags extends ServerFlags {
  readonly dependants?: boolean;
}

/** `rota retry ID…`: puts failed and cancelled tasks back into the queue. */
export function retryCommand(): Command {
  const command = new Command("retry")
    .description("Put failed or cancelled tasks back into the queue.")
    .argument("<id...>", "ids of tasks: tsk_…")
    .option("--dependants", "also requeue tasks cancelled because of these");
  return withServerOptions(command).action(async (ids: string[], flags: RetryFlags) => {
    const { tasks } = openClient(flags);
    await forEachId(ids, flags, {
      act: (id) => tasks.retry(id, { dependants: flags.dependants === true }),
      say: ({ taskId, state }) => print(`${taskId} ${state}`),
    });
  });
}
