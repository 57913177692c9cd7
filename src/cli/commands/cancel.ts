import { Command } from "commander";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { print } from "../terminal/print.ts";
import { forEachId } from "./each-id.ts";

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
