import { setTimeout as sleep } from "node:timers/promises";
import { Command } from "commander";
import type { Bulk, BulkInput, BulkPreview } from "../../client/index.ts";
import type { BulkAction } from "../../model/bulk.ts";
import { numberFlag } from "../flags/flag-values.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { type TaskFilterFlags, toTaskFilter, withTaskFilterOptions } from "../flags/task-filter-flags.ts";
import { print, printJson } from "../terminal/print.ts";
import { UsageError } from "../terminal/usage-error.ts";

/** How often the progress of a bulk action is polled. */
const LOOK_MS = 500;

interface BulkFlags extends ServerFlags, TaskFilterFlags {
  readonly limit?: string;
  readonly dryRun?: boolean;
  readonly wait: boolean;
}

const DESCRIPTIONS: Readonly<Record<BulkAction, string>> = {
  cancel: "Cancel all tasks that match, waiting or running.",
  retry: "Put all failed or cancelled tasks that match back into the queue.",
  delete: "Delete all ended tasks that match.",
};

const PAST: Readonly<Record<BulkAction, string>> = {
  cancel: "cancelled",
  retry: "retried",
  delete: "deleted",
};

/** `rota tasks cancel`, `rota tasks retry` and `rota tasks delete`: one bulk action on all tasks that match. */
export function bulkTasksCommand(action: BulkAction): Command {
  const command = withTaskFilterOptions(new Command(action).description(DESCRIPTIONS[action]))
    .option("--limit <number>", "how many at most (default: 100000)")
    .option("--dry-run", "only count the tasks that match")
    .option("--no-wait", "do not wait until it is done");
  return withServerOptions(command).action(async (flags: BulkFlags) => {
    const { bulks } = openClient(flags);
    const { limit } = flags;
    const filter = toTaskFilter(flags);
    if (Object.keys(filter).length === 0) {
      throw new UsageError(`select the tasks to ${action}, for instance with --agent NAME or --batch ID`);
    }
    const input = {
      action,
      filter,
      ...(limit === undefined ? {} : { limit: numberFlag(limit) }),
    } as BulkInput;
    if (flags.dryRun) return showPreview(await bulks.preview(input), flags);
    let bulk = await bulks.get((await bulks.start(input)).bulkId);
    while (flags.wait && bulk.state === "running") {
      await sleep(LOOK_MS);
      bulk = await bulks.get(bulk.bulkId);
    }
    showBulk(bulk, flags);
  });
}

function showPreview(preview: BulkPreview, { json }: ServerFlags): void {
  if (json) printJson(preview);
  else for (const line of previewLines(preview)) print(line);
}

function previewLines({ matched, capped, sample }: BulkPreview): string[] {
  return [
    `${capped ? "more than " : ""}${matched} ${matched === 1 ? "task matches" : "tasks match"}`,
    ...sample.map(({ taskId, agentId, state }) => `  ${taskId}  ${agentId}  ${state}`),
    ...(matched > sample.length ? [`  and ${matched - sample.length} more`] : []),
  ];
}

/** The progress of a bulk action in one line. */
export function showBulk(bulk: Bulk, { json }: ServerFlags): void {
  if (json) printJson(bulk);
  else print(bulkLine(bulk));
}

function bulkLine({ bulkId, action, state, matched, done, skipped, failed }: Bulk): string {
  const rest = [
    ...(skipped > 0 ? [`${skipped} skipped`] : []),
    ...(failed > 0 ? [`${failed} no longer existed`] : []),
  ];
  return `${bulkId} ${state}: ${[`${done} of ${matched} ${PAST[action]}`, ...rest].join(", ")}`;
}
