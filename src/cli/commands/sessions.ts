import { Command } from "commander";
import type { SessionChanges } from "../../client/index.ts";
import { SESSION_CHANGES } from "../../model/input/session-input.ts";
import { flagsOfFields, inputOfFlags, withInputOptions } from "../flags/input-flags.ts";
import { namingFlags } from "../flags/naming-flags.ts";
import { openClient, withServerOptions } from "../flags/server-options.ts";
import { oneLine } from "../terminal/display-text.ts";
import { lineWidth, print, printJson } from "../terminal/print.ts";
import { UsageError } from "../terminal/usage-error.ts";
import { type PageFlags, printPages, withPageOptions } from "../views/pages.ts";
import { sessionSheet, sessionsTable } from "../views/sessions-table.ts";

interface SessionsFlags extends PageFlags {
  readonly unset?: readonly string[];
  readonly delete?: boolean;
}

/** `rota sessions`: lists sessions, or shows or changes one. */
export function sessionsCommand(): Command {
  const command = new Command("sessions")
    .description("List sessions, or show, change or delete one.")
    .argument("[key]", "the session to show, or with one of the settings below to change")
    .option("--delete", "delete its settings and context; the session is deleted with its last task");
  withInputOptions(command, SESSION_CHANGES.fields, { isChange: true }).option(
    "--unset <fields...>",
    "reset settings to the default, like cap or debounceMs",
  );
  return withServerOptions(withPageOptions(command)).action(showSessions);
}

async function showSessions(key: string | undefined, flags: SessionsFlags): Promise<void> {
  const changes = changesOf(flags);
  const isChange = Object.keys(changes).length > 0;
  if (key === undefined) {
    if (isChange) throw new UsageError("name the session to change, as in rota sessions KEY --cap 3");
    if (flags.delete) throw new UsageError("name the session to delete, as in rota sessions KEY --delete");
    return listSessions(flags);
  }
  const { sessions } = openClient(flags);
  if (flags.delete) {
    if (isChange) throw new UsageError("--delete takes no settings: leave out the settings, or --delete");
    const deleted = await sessions.delete(key);
    if (flags.json) printJson({ key, ...deleted });
    else print(`${oneLine(key)} deleted`);
    return;
  }
  const session = await (isChange ? sessions.update(key, changes) : sessions.get(key)).catch((error) => {
    throw namingFlags(error, flagsOfFields(SESSION_CHANGES.fields));
  });
  if (flags.json) printJson(session);
  else for (const line of sessionSheet(session)) print(line);
}

async function listSessions(flags: SessionsFlags): Promise<void> {
  const { sessions } = openClient(flags);
  await printPages(flags, {
    noun: "sessions",
    read: (position) => sessions.list(position),
    cursor: ({ nextCursor }) => nextCursor,
    lines: (page) => sessionsTable(page.sessions, { width: lineWidth() }),
  });
}

function changesOf(flags: SessionsFlags): SessionChanges {
  const unset = Object.fromEntries((flags.unset ?? []).map((field) => [field, null]));
  return { ...unset, ...inputOfFlags(SESSION_CHANGES.fields, flags, Date.now()) };
}
