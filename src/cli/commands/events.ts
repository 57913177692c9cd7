import { Command } from "commander";
import type { EventPageFilter, RotaClient } from "../../client/index.ts";
import { numberFlag } from "../flags/flag-values.ts";
import { given } from "../flags/given.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { print, printJson } from "../terminal/print.ts";
import { eventLine } from "../views/event-line.ts";

/** The default of `--limit`. */
const SHOWN = 20;

interface EventsFlags extends ServerFlags {
  readonly type?: string;
  readonly task?: string;
  readonly after?: string;
  readonly before?: string;
  readonly limit?: string;
}

/** `rota events`: lists stored events. */
export function eventsCommand(): Command {
  const command = new Command("events")
    .description("List stored events.")
    .option("--type <type>", "only events of this type, such as task.failed")
    .option("--task <id>", "only events of this task")
    .option(
      "--after <number>",
      "only events with a larger number, oldest first; 0: from the oldest (default: the newest)",
    )
    .option("--before <number>", "only events with a smaller number")
    .option("--limit <number>", `how many, 1000 at most (default: ${SHOWN})`);
  return withServerOptions(command).action(async (flags: EventsFlags) => {
    const { type, task, after, before, limit } = flags;
    const filter = given({
      type,
      taskId: task,
      after: after === undefined ? undefined : numberFlag(after),
      before: before === undefined ? undefined : numberFlag(before),
      limit: limit === undefined ? SHOWN : numberFlag(limit),
    }) as EventPageFilter & { readonly limit: number };
    const page = await readPage(openClient(flags), filter);
    if (flags.json) return printJson(page);
    if (page.events.length === 0) return print("No stored event matches.");
    // The newest event comes last, as in a log.
    const inOrder = filter.after === undefined ? page.events.toReversed() : page.events;
    for (const event of inOrder) print(eventLine(event));
    if (page.next !== null) {
      print(`There may be more: --${filter.after === undefined ? "before" : "after"} ${page.next}`);
    }
  });
}

/** The server reads a bounded part of its log for one page: continues until the page is full, or the log ends. */
async function readPage(rota: RotaClient, filter: EventPageFilter & { readonly limit: number }) {
  const first = await rota.eventPage(filter);
  const events = [...first.events];
  let { next } = first;
  while (next !== null && events.length < filter.limit) {
    const at = filter.after === undefined ? { before: next } : { after: next };
    const page = await rota.eventPage({ ...filter, ...at, limit: filter.limit - events.length });
    events.push(...page.events);
    next = page.next;
  }
  return { events, count: events.length, next };
}
