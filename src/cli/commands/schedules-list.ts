import { Command } from "commander";
import type { ScheduleFilter } from "../../client/index.ts";
import { given } from "../flags/given.ts";
import { openClient, withServerOptions } from "../flags/server-options.ts";
import { lineWidth } from "../terminal/print.ts";
import { type PageFlags, printPages, withPageOptions } from "../views/pages.ts";
import { schedulesTable } from "../views/schedules-table.ts";

interface ListFlags extends PageFlags {
  readonly status?: string;
  readonly agent?: string;
}

/** The largest page of schedules. */
const PAGE_MAX = 200;

/** `rota schedules list`; `list` may be omitted. */
export function listCommand(): Command {
  const command = new Command("list")
    .description("List schedules, the one that was changed last first; those on further pages by id.")
    .option("--status <status>", "active, paused, completed or failed")
    .option("--agent <id>", "of this agent");
  return withServerOptions(withPageOptions(command)).action(async (flags: ListFlags) => {
    const { schedules } = openClient(flags);
    const { status, agent } = flags;
    // The server refuses wrong values, with its own messages.
    const filter = given({ status, agent }) as ScheduleFilter;
    const isFiltered = Object.keys(filter).length > 0 || flags.cursor !== undefined;
    await printPages(flags, {
      noun: "schedules",
      ...(isFiltered ? {} : { none: NONE }),
      pageMax: PAGE_MAX,
      read: (position) => schedules.list({ ...filter, ...position }),
      cursor: ({ next_cursor }) => next_cursor,
      lines: (page) => schedulesTable(page.schedules, { now: Date.now(), width: lineWidth() }),
    });
  });
}

const NONE = 'There are no schedules. Make one: rota schedule "in 30 minutes: look again"';
