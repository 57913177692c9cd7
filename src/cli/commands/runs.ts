import { Command } from "commander";
import type { RunFilter } from "../../client/index.ts";
import { pastFlag } from "../flags/flag-values.ts";
import { given } from "../flags/given.ts";
import { serialId } from "../flags/serial-id.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { lineWidth, print, printJson } from "../terminal/print.ts";
import { type PageFlags, printPages, withPageOptions } from "../views/pages.ts";
import { runSheet } from "../views/run-sheet.ts";
import { runsTable } from "../views/runs-table.ts";

interface ListFlags extends PageFlags {
  readonly schedule?: string;
  readonly status?: string;
  readonly since?: string;
}

/** The largest page of runs. */
const PAGE_MAX = 100;

/** `rota runs`: the due times of schedules and their outcomes. */
export function runsCommand(): Command {
  return new Command("runs")
    .description("List the runs of schedules, or show one run.")
    .addCommand(listCommand(), { isDefault: true })
    .addCommand(showCommand());
}

function listCommand(): Command {
  const command = new Command("list")
    .description("List runs, newest first.")
    .option("--schedule <id>", "of this schedule")
    .option("--status <status>", "running, succeeded, failed, skipped or missed")
    .option("--since <time>", "that started or ended since: a span back from now like 2h, or RFC 3339");
  return withServerOptions(withPageOptions(command)).action(async (flags: ListFlags) => {
    const { schedules, runs } = openClient(flags);
    const { status, since } = flags;
    const schedule = flags.schedule === undefined ? undefined : serialId("schedule", flags.schedule);
    // The server refuses a wrong status, with its own message.
    const filter = given({
      status,
      since: since === undefined ? undefined : pastFlag("--since", since, Date.now()),
    }) as RunFilter;
    await printPages(flags, {
      noun: "runs",
      pageMax: PAGE_MAX,
      read: (position) =>
        schedule === undefined
          ? runs.list({ ...filter, ...position })
          : schedules.runs(schedule, { ...filter, ...position }),
      cursor: ({ next_cursor }) => next_cursor,
      lines: (page) => runsTable(page.runs, { now: Date.now(), width: lineWidth() }),
    });
  });
}

function showCommand(): Command {
  const command = new Command("show")
    .alias("get")
    .description("Show one run.")
    .argument("<id>", "the run's number");
  return withServerOptions(command).action(async (id: string, flags: ServerFlags) => {
    const run = await openClient(flags).runs.get(serialId("run", id));
    if (flags.json) printJson({ run });
    else for (const line of runSheet(run, Date.now())) print(line);
  });
}
