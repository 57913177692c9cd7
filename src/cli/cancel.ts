import { Command } from "commander";
import { forEachId } from "./each-id.ts";
import { print } from "./print.ts";
import { openClient, type ServerFlags, withServerOptions } from "./server-options.ts";

/** `rota cancel ID…`: ends tasks for good. */
export function cancelCommand(): Command {
  const command = new Command("cancel")
    .description("Cancel tasks, waiting or running.")
    .argument("<id...>", "ids of tasks: tsk_…");
  return withServerOptions(command).action(async (ids: string[], flags: ServerFlags) => {
    const { tasks } = openClient(flags);
    await forEachId(ids, flags, {
      act: (id) => tasks.cancel(id),
      say: ({ taskId, status }) => print(`${taskId} ${status}`),
    });
  });
}
