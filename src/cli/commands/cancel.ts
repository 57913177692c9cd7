import { Command } from "commander";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { print } from "../terminal/print.ts";
import { forEachId } from "./each-id.ts";

interface CancelFlags extends ServerFlags {
  readonly tree?: boolean;
}

/** `rota cancel ID…`: ends tasks for good. */
export function cancelCommand(): Command {
  const command = new Command("cancel")
    .description("Cancel tasks, waiting or running.")
    .argument("<id...>", "ids of tasks: tsk_…")
    .option("--tree", "also cancel all tasks that were submitted within them, and within those");
  return withServerOptions(command).action(async (ids: string[], flags: CancelFlags) => {
    const { tasks } = openClient(flags);
    const options = flags.tree === undefined ? {} : { tree: flags.tree };
    await forEachId(ids, flags, {
      act: (id) => tasks.cancel(id, options),
      say: ({ taskId, status, cancelled, more }) =>
        print(
          cancelled === undefined
            ? `${taskId} ${status}`
            : `${taskId} ${status}, ${cancelled} in all${more ? "; there may be more: cancel it again" : ""}`,
        ),
    });
  });
}
