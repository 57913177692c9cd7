import { Command } from "commander";
import { forEachId } from "./each-id.ts";
import { print } from "./print.ts";
import { openClient, type ServerFlags, withServerOptions } from "./server-options.ts";

/** `rota retry ID…`: puts failed and cancelled tasks back into the queue. */
export function retryCommand(): Command {
  const command = new Command("retry")
    .description("Put failed or cancelled tasks back into the queue.")
    .argument("<id...>", "ids of tasks: tsk_…");
  return withServerOptions(command).action(async (ids: string[], flags: ServerFlags) => {
    const { tasks } = openClient(flags);
    await forEachId(ids, flags, {
      act: (id) => tasks.retry(id),
      say: ({ taskId, state }) => print(`${taskId} ${state}`),
    });
  });
}
