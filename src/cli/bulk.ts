import { Command } from "commander";
import { openClient, type ServerFlags, withServerOptions } from "./server-options.ts";
import { showBulk } from "./tasks-bulk.ts";

interface BulkFlags extends ServerFlags {
  readonly abort?: boolean;
}

/** `rota bulk ID`: how far one action on many tasks is. */
export function bulkCommand(): Command {
  const command = new Command("bulk")
    .description("Show how far an action on many tasks is, or abort it.")
    .argument("<id>", "the id that `rota tasks cancel`, `retry` or `delete` printed: blk_…")
    .option("--abort", "end it; what was done stays done");
  return withServerOptions(command).action(async (id: string, flags: BulkFlags) => {
    const { bulks } = openClient(flags);
    showBulk(await (flags.abort ? bulks.abort(id) : bulks.get(id)), flags);
  });
}
