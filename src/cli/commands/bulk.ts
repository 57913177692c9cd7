import { Command } from "commander";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { showBulk } from "./tasks-bulk.ts";

interface BulkFlags extends ServerFlags {
  readonly abort?: boolean;
}

/** `rota bulk ID`: shows the progress of a bulk action. */
export function bulkCommand(): Command {
  const command = new Command("bulk")
    .description("Show the progress of a bulk action, or abort it.")
    .argument("<id>", "the id (blk_…) that `rota tasks cancel`, `retry` or `delete` printed")
    .option("--abort", "end it; tasks that it has acted on stay as they are");
  return withServerOptions(command).action(async (id: string, flags: BulkFlags) => {
    const { bulks } = openClient(flags);
    showBulk(await (flags.abort ? bulks.abort(id) : bulks.get(id)), flags);
  });
}
