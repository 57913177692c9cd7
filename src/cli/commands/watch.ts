import { Command } from "commander";
import type { EventsOptions, RotaApi } from "../../interface/rota.ts";
import { silentLog } from "../../model/log.ts";
import { given } from "../flags/given.ts";
import { serialId } from "../flags/serial-id.ts";
import { openClient, type ServerFlags, withServerOptions } from "../flags/server-options.ts";
import { interruption } from "../terminal/interruption.ts";
import { print, printJson, printNotice } from "../terminal/print.ts";
import { UsageError } from "../terminal/usage-error.ts";
import { eventLine } from "../views/event-line.ts";
import { liveView } from "../views/live-view.ts";
import { notificationLine } from "../views/notification-line.ts";

interface WatchFlags extends ServerFlags {
  readonly agent?: string;
  readonly batch?: string;
  readonly session?: string;
  readonly schedule?: string;
  readonly notifications?: boolean;
  readonly after?: string;
  readonly lines?: boolean;
}

/** `rota watch`: shows events live. */
export function watchCommand(): Command {
  const command = new Command("watch")
    .description("Watch events live.")
    .option("--agent <id>", "only what concerns this agent")
    .option("--batch <id>", "only what concerns this batch")
    .option("--session <key>", "only what concerns this session")
    .option("--schedule <id>", "only what concerns this schedule")
    .option(
      "--notifications",
      "what schedules, their runs and workers do, a line for each; or of --schedule alone",
    )
    .option("--lines", "a line for each event, as when it is not written to a terminal")
    .option("--after <number>", "with lines: from this one on, 0 for all there are");
  return withServerOptions(command).action(watch);
}

async function watch(flags: WatchFlags): Promise<void> {
  const filter = given({
    agentId: flags.agent,
    batchId: flags.batch,
    sessionKey: flags.session,
    scheduleId: flags.schedule === undefined ? undefined : serialId("schedule", flags.schedule),
  }) as EventsOptions;
  const interrupted = interruption();
  const { signal } = interrupted;
  if (flags.notifications)
    await printNotifications(openClient(flags), { ...filter, ...after(flags), signal }, flags);
  else await show(flags, { ...filter, signal });
  process.exitCode = interrupted.exitCodeOfEndless();
}

async function show(
  flags: WatchFlags,
  { signal, ...filter }: EventsOptions & { readonly signal: AbortSignal },
): Promise<void> {
  const asLines = flags.lines || flags.json || flags.after !== undefined || !process.stdout.isTTY;
  if (asLines) return printEvents(openClient(flags), { ...filter, ...after(flags), signal }, flags);
  // The live view shows errors itself. A log line would break the picture.
  const rota = openClient(flags, silentLog);
  return liveView(rota, { title: `Rota at ${rota.url}`, filter, signal });
}

/** A line for each event, until the signal fires. */
export async function printEvents(
  rota: RotaApi,
  options: EventsOptions,
  { json }: { readonly json?: boolean },
): Promise<void> {
  for await (const event of rota.events({ ...options, onGap })) {
    if (json) printJson(event);
    else print(eventLine(event));
  }
}

/** A line for each notification, until the signal fires. */
async function printNotifications(
  rota: RotaApi,
  { agentId, batchId, sessionKey, scheduleId, ...options }: EventsOptions,
  { json }: WatchFlags,
): Promise<void> {
  if (agentId !== undefined || batchId !== undefined || sessionKey !== undefined) {
    throw new UsageError(
      "--notifications cannot be combined with --agent, --batch or --session: leave them out, or use --schedule ID",
    );
  }
  for await (const notification of rota.notifications({ ...options, onGap })) {
    if (scheduleId !== undefined && notification.task_id !== scheduleId) continue;
    if (json) printJson(notification);
    else print(notificationLine(notification));
  }
}

function onGap({ after: last, oldest }: { after: number; oldest: number }): void {
  const isOlder = oldest > last;
  printNotice(
    isOlder
      ? `What happened between ${last} and ${oldest} has been deleted.`
      : `The database was restored to an earlier state: events up to ${last} may no longer be valid.`,
  );
}

function after({ after: text }: WatchFlags): { after?: number } {
  if (text === undefined) return {};
  if (/^\d{1,15}$/.test(text)) return { after: Number(text) };
  throw new UsageError(
    `--after must be the number of an event or notification, 0 for all there are, not ${text}`,
  );
}
