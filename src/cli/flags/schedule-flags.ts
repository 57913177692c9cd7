import type { Command } from "commander";
import { jsonFlag, numberFlag, secondsSpanFlag, spanFlag, untilFlag } from "./flag-values.ts";

/** The fields of a schedule, as flags. */
export interface ScheduleFlags {
  readonly agent?: string;
  readonly name?: string;
  readonly tz?: string;
  readonly session?: string;
  readonly conversation?: string;
  readonly overlap?: string;
  readonly catchUp?: string;
  readonly usefulFor?: string;
  readonly timeout?: string;
  readonly retries?: string;
  readonly instruction?: string;
  readonly payload?: string;
  readonly lane?: string;
  readonly priority?: string;
  readonly metadata?: string;
  readonly callback?: string;
  readonly maxRuns?: string;
  readonly until?: string;
  readonly pauseAfterFailures?: string;
  readonly deleteAfterRun?: boolean;
}

type FieldOf = (value: string) => Record<string, unknown>;

/** The field that each flag with a value sets. */
const FIELDS: Readonly<Record<Exclude<keyof ScheduleFlags, "deleteAfterRun">, FieldOf>> = {
  agent: (agent) => ({ agent }),
  name: (name) => ({ name }),
  tz: (tz) => ({ tz }),
  session: (session_key) => ({ session_key }),
  conversation: (conversation_id) => ({ conversation_id }),
  overlap: (overlap) => ({ overlap }),
  catchUp: (catch_up) => ({ catch_up }),
  usefulFor: (span) => ({ useful_for: secondsSpanFlag(span) }),
  timeout: (span) => ({ timeout: spanFlag(span) }),
  retries: (max_retries) => ({ retry: { max_retries: numberFlag(max_retries) } }),
  instruction: (instruction) => ({ instruction }),
  payload: (json) => ({ payload: jsonFlag("--payload", json) }),
  lane: (lane) => ({ lane }),
  priority: (priority) => ({ priority: numberFlag(priority) }),
  metadata: (json) => ({ metadata: jsonFlag("--metadata", json) }),
  callback: (callback_url) => ({ callback_url }),
  maxRuns: (max_runs) => ({ max_runs: numberFlag(max_runs) }),
  until: (moment) => ({ until: untilFlag(moment) }),
  pauseAfterFailures: (failures) => ({ pause_after_failures: numberFlag(failures) }),
};

/** Flags whose names differ from their fields. */
export const SCHEDULE_FIELD_FLAGS: Readonly<Record<string, string>> = {
  session_key: "--session",
  conversation_id: "--conversation",
  catch_up: "--catch-up",
  useful_for: "--useful-for",
  "retry.max_retries": "--retries",
  callback_url: "--callback",
  max_runs: "--max-runs",
  pause_after_failures: "--pause-after-failures",
  delete_after_run: "--delete-after-run",
};

interface ScheduleOption {
  readonly flag: string;
  readonly description: string;
  /** The default for a new schedule. */
  readonly without?: string;
}

const OPTIONS: readonly ScheduleOption[] = [
  { flag: "--agent <id>", description: "the agent that gets it", without: "index" },
  { flag: "--name <name>", description: "what to call it" },
  { flag: "--tz <zone>", description: "the time zone, like Europe/Berlin", without: "the server's" },
  { flag: "--session <key>", description: "the session its runs are part of", without: "one of its own" },
  { flag: "--conversation <id>", description: "the conversation that the agent's side knows it by" },
  {
    flag: "--overlap <what>",
    description: "when it is due while its last run still goes: skip, queue, replace or allow",
    without: "skip",
  },
  {
    flag: "--catch-up <what>",
    description: "which of the moments still run that came while no server did: one, none or all",
    without: "one",
  },
  {
    flag: "--useful-for <span>",
    description: "how late it may still run: seconds, or a span like 2h",
    without: "however late",
  },
  {
    flag: "--timeout <span>",
    description: "for each try: milliseconds, or a span like 30s",
    without: "the server's",
  },
  { flag: "--retries <number>", description: "how often a run is tried again after a failure", without: "3" },
  { flag: "--instruction <text>", description: "what the agent is to do, in place of a message" },
  { flag: "--payload <json>", description: "any JSON, in place of a message" },
  { flag: "--lane <name>", description: "the lane its runs wait in", without: "cron" },
  {
    flag: "--priority <priority>",
    description: "of its runs: critical, high, normal, low or a number, lower first",
    without: "normal",
  },
  { flag: "--metadata <json>", description: "your own data: stored with its tasks and returned with them" },
  { flag: "--callback <url>", description: "URL that is called when a run has ended" },
  {
    flag: "--max-runs <number>",
    description: "how often it may fire, and is completed then",
    without: "any number of times",
  },
  {
    flag: "--until <time>",
    description: "the last moment it may be due: RFC 3339, seconds since 1970, or a span from now like 30d",
    without: "for ever",
  },
  {
    flag: "--pause-after-failures <number>",
    description: "after how many failed runs in a row it is paused; 0 is never",
    without: "never",
  },
  { flag: "--delete-after-run", description: "it is due once, and goes after it has succeeded" },
];

/** Adds the options of a new schedule, or of an edit, which keeps the fields that are not given. */
export function withScheduleOptions(command: Command, { isNew }: { readonly isNew: boolean }): Command {
  for (const { flag, description, without } of OPTIONS) {
    const shown = isNew && without !== undefined ? `${description} (default: ${without})` : description;
    command.option(flag, shown);
  }
  return command;
}

/** The fields that the flags set. The server refuses wrong values, with its own messages. */
export function scheduleFields(flags: ScheduleFlags): Record<string, unknown> {
  const fields = Object.entries(FIELDS).flatMap(([flag, fieldOf]) => {
    const value = flags[flag as keyof typeof FIELDS];
    return value === undefined ? [] : [fieldOf(value)];
  });
  const { deleteAfterRun } = flags;
  return Object.assign(
    {},
    ...fields,
    deleteAfterRun === undefined ? {} : { delete_after_run: deleteAfterRun },
  );
}
