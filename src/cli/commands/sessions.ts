import { Command } from "commander";
import type { SessionChanges } from "../../client/index.ts";
import { numberFlag, spanFlag } from "../flags/flag-values.ts";
import { given } from "../flags/given.ts";
import { namingFlags } from "../flags/naming-flags.ts";
import { openClient, withServerOptions } from "../flags/server-options.ts";
import { oneLine } from "../terminal/display-text.ts";
import { lineWidth, print, printJson } from "../terminal/print.ts";
import { UsageError } from "../terminal/usage-error.ts";
import { type PageFlags, printPages, withPageOptions } from "../views/pages.ts";
import { sessionSheet, sessionsTable } from "../views/sessions-table.ts";

interface SessionsFlags extends PageFlags {
  readonly agent?: string;
  readonly lane?: string;
  readonly mode?: string;
  readonly cap?: string;
  readonly drop?: string;
  readonly debounce?: string;
  readonly maxConcurrent?: string;
  readonly tokens?: string;
  readonly contextWindow?: string;
  readonly unset?: readonly string[];
  readonly delete?: boolean;
}

/** Flags whose names differ from their fields. */
const FIELD_FLAGS = {
  agentId: "--agent",
  debounceMs: "--debounce",
  maxConcurrent: "--max-concurrent",
  contextWindow: "--context-window",
};

/** `rota sessions`: lists sessions, or shows or changes one. */
export function sessionsCommand(): Command {
  const command = new Command("sessions")
    .description("List sessions, or show, change or delete one.")
    .argument("[key]", "the session to show, or with one of the settings below to change")
    .option("--delete", "delete its settings and context; the session goes with its last task")
    .option("--agent <id>", "set: who its messages go to")
    .option("--lane <name>", "set: where they run")
    .option("--mode <mode>", "set: queue, followup or interrupt")
    .option("--cap <number>", "set: how many messages may wait")
    .option("--drop <policy>", "set: who goes when it is full, old or new")
    .option("--debounce <span>", "set: what comes so soon becomes one; milliseconds, or a span like 2s")
    .option("--max-concurrent <number>", "set: how many run at once")
    .option("--tokens <number>", "set: how much of its context is used")
    .option("--context-window <number>", "set: how large that is")
    .option("--unset <fields...>", "take settings back, like cap or debounceMs");
  return withServerOptions(withPageOptions(command)).action(showSessions);
}

async function showSessions(key: string | undefined, flags: SessionsFlags): Promise<void> {
  const changes = changesOf(flags);
  const isChange = Object.keys(changes).length > 0;
  if (key === undefined) {
    if (isChange)
      throw new UsageError("settings are of one session: name it, as in rota sessions KEY --cap 3");
    if (flags.delete) throw new UsageError("name the session to delete, as in rota sessions KEY --delete");
    return listSessions(flags);
  }
  const { sessions } = openClient(flags);
  if (flags.delete) {
    if (isChange) throw new UsageError("a session is changed or deleted: leave the settings or --delete out");
    const deleted = await sessions.delete(key);
    if (flags.json) printJson({ key, ...deleted });
    else print(`${oneLine(key)} deleted`);
    return;
  }
  const session = await (isChange ? sessions.update(key, changes) : sessions.get(key)).catch((error) => {
    throw namingFlags(error, FIELD_FLAGS);
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
  const number = (text: string | undefined) => (text === undefined ? undefined : numberFlag(text));
  const { agent: agentId, lane, mode, cap, drop, debounce, maxConcurrent, tokens, contextWindow } = flags;
  const set = given({
    agentId,
    lane,
    mode,
    cap: number(cap),
    drop,
    debounceMs: debounce === undefined ? undefined : spanFlag(debounce),
    maxConcurrent: number(maxConcurrent),
    tokens: number(tokens),
    contextWindow: number(contextWindow),
  });
  const unset = Object.fromEntries((flags.unset ?? []).map((field) => [field, null]));
  return { ...unset, ...set } as SessionChanges;
}
