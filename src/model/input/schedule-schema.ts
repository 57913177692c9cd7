import { CATCH_UPS, EVERY_MS_MIN, OVERLAPS, PREVIEW_COUNT, STEP_DAYS_MAX } from "../schedule.ts";
import { parseRfc3339 } from "../text/rfc3339.ts";
import { checkFilledText, invalidField, quoted } from "./field-checks.ts";
import {
  agentId,
  anyLane,
  anyObject,
  boolean,
  callbackUrl,
  choice,
  json,
  number,
  object,
  priority,
  sessionKey,
  text,
  time,
  timeout,
} from "./kinds.ts";
import { RETRY_RANGES } from "./retry-policy-schema.ts";
import { type FieldTable, type InputOf, type Kind, optional, required, type Schema } from "./schema.ts";

const NAME_LENGTH_MAX = 200;
const CONVERSATION_ID_LENGTH_MAX = 256;
/** At most ten years: more is most likely a typing error, and `null` means no limit. */
const USEFUL_FOR = { min: 1, max: 10 * 365 * 24 * 60 * 60, unit: "seconds" } as const;
/** More is most likely a typing error, and `null` means no limit. */
const MAX_RUNS = { min: 1, max: 1_000_000_000 } as const;
const PAUSE_AFTER_FAILURES = { min: 0, max: 1_000_000 } as const;
/** The end of the year 9999. Current times in milliseconds are larger, so that they are not taken for seconds. */
export const SECONDS_MAX = 253_402_300_799;

const ruleZone = optional(text(), { description: "An IANA time zone, like Europe/Berlin." });

/** The objects that a `schedule` can be, besides a phrase or a cron expression. */
export const RULE_FIELDS = {
  at: {
    kind: required(choice(["at"])),
    atMs: required(number({ min: 0, max: Number.MAX_SAFE_INTEGER, unit: "milliseconds" }), {
      description: "Milliseconds since 1970.",
      missing: "must be an integer of milliseconds",
    }),
    tz: ruleZone,
  },
  every: {
    kind: required(choice(["every"])),
    everyMs: required(
      number({ min: EVERY_MS_MIN, max: STEP_DAYS_MAX * 24 * 60 * 60 * 1_000, unit: "milliseconds" }),
      { description: "Milliseconds.", missing: "must be an integer of milliseconds" },
    ),
    tz: ruleZone,
  },
  cron: {
    kind: required(choice(["cron"])),
    expr: required(cronExpression(), { description: "Five or six fields, or a nickname like `@daily`." }),
    tz: ruleZone,
  },
} as const satisfies Readonly<Record<string, FieldTable>>;

/** `src/schedules` reads it. */
function cronExpression(): Kind<string> {
  return {
    shape: { type: "text" },
    read: (value, field) => {
      if (typeof value === "string") return value;
      throw invalidField(field, `\`${field}\` must be a cron expression like 0 9 * * 1-5`);
    },
  };
}

const RULE_OBJECTS = Object.values(RULE_FIELDS).map((fields) => ({ type: "fields", fields }) as const);

/** When something is due. `src/schedules` reads it: what it means depends on the time and the zone. */
const RULE: Kind<ScheduleInput, unknown> = {
  shape: {
    type: "component",
    name: "Schedule",
    description: "When something is to be done; docs/schedules.md lists the phrases.",
    examples: [
      "every Mon at 09:00",
      "in 30 minutes",
      { kind: "every", everyMs: 1_800_000 },
      { kind: "cron", expr: "0 9 * * 1-5", tz: "Europe/Rome" },
    ],
    of: {
      type: "union",
      of: [{ type: "text", description: "A phrase or a cron expression." }, ...RULE_OBJECTS],
    },
  },
  read: (value) => value,
};

/** A time zone. `src/schedules` checks it. */
function zone(): Kind<string, unknown> {
  return { shape: { type: "text" }, read: (value) => value };
}

/** A text of one line. */
function line(lengthMax: number): Kind<string> {
  return {
    shape: { type: "text" },
    read: (value, field) => {
      const isLine = typeof value === "string" && /^[^\p{Cc}\p{Cs}]+$/u.test(value) && value.trim() !== "";
      if (isLine && [...value].length <= lengthMax) return value;
      throw invalidField(
        field,
        `\`${field}\` must be 1 to ${lengthMax} characters without control characters, not ${quoted(value)}`,
      );
    },
  };
}

/** The id of the conversation on the agent's side: a text, or an integer, which is stored as text. */
export function conversationId(): Kind<string | number, string> {
  const id = line(CONVERSATION_ID_LENGTH_MAX);
  return {
    shape: { type: "union", of: [{ type: "text" }, { type: "integer" }] },
    read: (value, field, reading) =>
      Number.isSafeInteger(value) ? String(value) : id.read(value, field, reading),
  };
}

/** A time, as seconds since 1970 or as RFC 3339; read as milliseconds. */
export function secondsOrTime(): Kind<number | string | Date, number> {
  return {
    shape: { type: "union", of: [{ type: "integer", unit: "seconds since 1970" }, { type: "text" }] },
    read: (value, field) => {
      const given = value instanceof Date ? value.toJSON() : value;
      const isSeconds = typeof given === "number" && Number.isInteger(given);
      if (isSeconds && given >= 0 && given <= SECONDS_MAX) return given * 1_000;
      const moment = typeof given === "string" ? parseRfc3339(given) : null;
      if (moment !== null) return moment;
      throw invalidField(
        field,
        `\`${field}\` must be an integer of seconds since 1970, or an RFC 3339 time like "2030-01-31T09:00:00Z", not ${quoted(value)}`,
      );
    },
  };
}

/** A text that every database can store. */
function taskText(): Kind<string> {
  return {
    shape: { type: "text" },
    read: (value, field) => {
      const given = checkFilledText(value, field);
      if (!given.includes("\0") && given.isWellFormed()) return given;
      throw invalidField(field, `\`${field}\` must be text without NUL and without unpaired surrogates`);
    },
  };
}

/** The work for the agent: exactly one of these. */
export const WORK_FIELDS = {
  message: optional(taskText(), {
    description: "The message for the agent. Set exactly one of `message`, `instruction` and `payload`.",
  }),
  instruction: optional(taskText(), {
    description: "What the agent is to do, as in a task; in place of `message`.",
    flag: "--instruction <text>",
  }),
  payload: optional(json(), {
    description: "Any JSON, as in a task; in place of `message`.",
    flag: "--payload <json>",
  }),
} as const;

/** The retries of its runs. */
export const RETRY_FIELDS = {
  max_retries: optional(number(RETRY_RANGES.maxRetries), {
    description: "How often it is retried after a failure.",
    default: "3",
    flag: "--retries <number>",
  }),
  base_delay_ms: optional(number(RETRY_RANGES.backoffMs), {
    description: "The wait before the first retry, doubled for each further.",
    default: "2000",
  }),
  max_delay_ms: optional(number(RETRY_RANGES.maxBackoffMs), {
    description: "The longest wait.",
    default: "30000",
  }),
} as const;

/** The settings of a schedule, in a create and in a change. */
const SETTINGS = {
  agent: optional(agentId(), {
    description: "The agent: one that is listed.",
    default: "`index`",
    flag: "--agent <id>",
  }),
  name: optional(line(NAME_LENGTH_MAX), {
    description: `A name for people, at most ${NAME_LENGTH_MAX} characters.`,
    flag: "--name <name>",
  }),
  tz: optional(zone(), {
    description: "The time zone of its times, like `Europe/Berlin`.",
    default: "the server's",
    flag: "--tz <zone>",
  }),
  conversation_id: optional(conversationId(), {
    description: "The conversation as the agent names it; an integer is returned as text.",
    flag: "--conversation <id>",
  }),
  session_key: optional(sessionKey(), {
    description: "The session that its runs are part of.",
    default: "one of its own",
    flag: "--session <key>",
  }),
  post_to_session: optional(boolean(), {
    description:
      "True: its runs do not wait for `session_key`, and only the answer of each is added to that session.",
    flag: "--post-to-session",
  }),
  enabled: optional(boolean(), { description: "False: it is paused, and nothing is due." }),
  delete_after_run: optional(boolean(), {
    description: "True: delete it once it has succeeded; only for a one-time schedule.",
    flag: "--delete-after-run",
  }),
  retry: optional(object(RETRY_FIELDS), { description: "How a failed run is retried." }),
  overlap: optional(choice(OVERLAPS), {
    description:
      "What happens to a due time while the previous run has not ended: `skip`, `queue`, `replace` or `allow`.",
    default: "`skip`",
    flag: "--overlap <what>",
  }),
  catch_up: optional(choice(CATCH_UPS), {
    description: "What happens to due times that passed while no node was running: `one`, `none` or `all`.",
    default: "`one`",
    flag: "--catch-up <what>",
  }),
  useful_for: optional(number(USEFUL_FOR), {
    description: "How many seconds late a due time may still fire.",
    default: "however late",
    flag: "--useful-for <span>",
  }),
  timeout: optional(timeout(), {
    description: "Milliseconds for each attempt, 1 000 to 600 000.",
    default: "`timeouts.defaultMs`",
    flag: "--timeout <span>",
  }),
  lane: optional(anyLane(), {
    description: "The lane that its runs wait in.",
    default: "`cron`",
    flag: "--lane <name>",
  }),
  priority: optional(priority(), {
    description: "Of its runs: an integer, lower first, or `critical`, `high`, `normal` or `low`.",
    default: "`normal`",
    flag: "--priority <priority>",
  }),
  metadata: optional(anyObject(), {
    description: "Your own data: the `metadata` of the tasks of its runs.",
    flag: "--metadata <json>",
  }),
  callback_url: optional(callbackUrl(), {
    description: "URL that receives a callback when each run ends.",
    flag: "--callback <url>",
  }),
  max_runs: optional(number(MAX_RUNS), {
    description: "How often it may fire; then it is `completed`.",
    default: "any number of times",
    flag: "--max-runs <number>",
  }),
  until: optional(secondsOrTime(), {
    description:
      "The last time at which it may be due, as seconds since 1970 or RFC 3339; then it is `completed`.",
    flag: "--until <time>",
  }),
  pause_after_failures: optional(number(PAUSE_AFTER_FAILURES), {
    description: "After how many failed runs in a row it is paused; 0: never.",
    default: "never",
    flag: "--pause-after-failures <number>",
  }),
} as const;

/** The input of a schedule. */
export const SCHEDULE = {
  name: "NewSchedule",
  noun: "schedule",
  description: "A task for an agent, and when it is due.",
  fields: {
    schedule: required(RULE, {
      description: "When it is due: a phrase, a cron expression or an object.",
    }),
    ...WORK_FIELDS,
    ...SETTINGS,
  },
  examples: [
    { schedule: "every monday at 9am", message: "Sum up last week.", agent: "index", name: "the week" },
    {
      schedule: "in 1 hour",
      message: "Look whether the deploy stayed green.",
      tz: "Europe/Berlin",
      delete_after_run: true,
      enabled: false,
      conversation_id: "c-42",
    },
    {
      schedule: { kind: "every", everyMs: 3_600_000 },
      message: "Look for new mail.",
      session_key: "mail",
      retry: { max_retries: 1, base_delay_ms: 500, max_delay_ms: 1_000 },
      overlap: "queue",
      catch_up: "none",
      useful_for: 900,
      timeout: 60_000,
    },
    {
      schedule: "every day at 7:00",
      instruction: "Sum up what came in over night.",
      lane: "team",
      priority: "high",
      metadata: { team: "support" },
      callback_url: "https://example.com/summed-up",
      max_runs: 30,
      until: "2030-12-31T23:59:59Z",
      pause_after_failures: 3,
    },
    { schedule: "every hour", payload: { collect: ["a", "b"] }, until: 1_924_991_999 },
  ],
} as const satisfies Schema;

/** The changes of a schedule. */
export const SCHEDULE_CHANGES = {
  name: "ScheduleChanges",
  noun: "schedule",
  isChanges: true,
  description: "Fields that are left out stay; null resets a field to its default.",
  fields: {
    status: optional(choice(["active", "paused"]), {
      description: "`active` or `paused`: the same as `enabled`.",
    }),
    schedule: required(RULE, { description: "The new time, counted from now." }),
    ...WORK_FIELDS,
    ...SETTINGS,
  },
  examples: [
    { status: "paused" },
    { schedule: "every weekday at 8:30", tz: "Europe/Berlin", name: null, enabled: true },
    { message: "Sum up yesterday.", overlap: "replace", retry: { max_retries: 0 }, useful_for: null },
    { instruction: "Sum up yesterday.", lane: null, priority: 1, max_runs: 10, until: null },
  ],
} as const satisfies Schema;

/** The input of a preview. */
export const PREVIEW = {
  name: "PreviewRequest",
  noun: "preview",
  description: "A schedule to preview.",
  fields: {
    schedule: required(RULE),
    tz: optional(zone(), { description: "An IANA time zone, like Europe/Berlin.", default: "the server's" }),
    from: optional(time(), {
      description: "Preview as of this time, RFC 3339, in the years 1970 to 2999.",
      default: "now",
    }),
    count: optional(number(PREVIEW_COUNT), {
      description: "How many due times to list.",
      default: String(PREVIEW_COUNT.default),
    }),
  },
  examples: [
    { schedule: "every day at 02:30", tz: "Europe/Berlin", from: "2030-03-30T00:00:00Z", count: 3 },
    { schedule: "in 30 minutes" },
    { schedule: { kind: "every", everyMs: 1_800_000 } },
    { schedule: { kind: "cron", expr: "0 9 * * 1-5", tz: "Europe/Rome" }, count: 10 },
  ],
} as const satisfies Schema;

/** How a schedule is to be run now. */
export const RUN_REQUEST = {
  name: "RunRequest",
  noun: "request",
  description: "How a schedule is to be run.",
  fields: {
    mode: optional(choice(["force", "due"]), {
      description: "`force`: now; `due`: only if a due time has passed.",
      default: "`force`",
    }),
  },
  examples: [{ mode: "force" }, { mode: "due" }, {}],
} as const satisfies Schema;

/** When a schedule is due: a phrase like `every Mon at 09:00`, a cron expression, or one of these objects. */
export type ScheduleInput = string | AtSchedule | EverySchedule | CronSchedule;

/** Once. */
export type AtSchedule = InputOf<(typeof RULE_FIELDS)["at"]>;

/** By elapsed time. */
export type EverySchedule = InputOf<(typeof RULE_FIELDS)["every"]>;

export type CronSchedule = InputOf<(typeof RULE_FIELDS)["cron"]>;
