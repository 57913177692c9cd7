import { checkAgentId } from "../agent.ts";
import { TASK_LOG_LEVELS } from "../task-log.ts";
import { isDeeperThan } from "../text/json-depth.ts";
import { utf8Length } from "../text/utf8-length.ts";
import {
  ATTEMPTS_PER_REQUEST_MAX,
  CLAIM_WAIT_S_MAX,
  REPORT_BYTES_MAX,
  RETRY_AFTER_MS_MAX,
  WORKER_AGENTS_MAX,
  WORKER_HEARTBEAT_MS,
  WORKER_LEASE_MS,
  WORKER_OUTCOMES,
  WORKER_SLOTS_MAX,
} from "../worker.ts";
import { checkText, type Fields, invalidField, isObject, quoted } from "./field-checks.ts";
import { boolean, choice, json, number, object, text, textLike, time } from "./kinds.ts";
import { pageLimit } from "./page-input.ts";
import { readFields } from "./read-fields.ts";
import {
  type FieldTable,
  type FilterSchema,
  type InputOf,
  type Kind,
  optional,
  type ReadOf,
  required,
  type Schema,
} from "./schema.ts";
import { JSON_DEPTH_MAX } from "./task-input.ts";

const NAME_LENGTH_MAX = 200;
const LABELS_MAX = 20;
const LABEL_LENGTH_MAX = 100;
const UUID_EXAMPLE = "8a0b7e0e-3c2d-4a54-9a2a-6f2e1f0c9b7d";
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** Stands for all agents that a worker may run. */
const ALL = "*";

function uuid(): Kind<string> {
  return {
    shape: { type: "text" },
    read: (value, field) => {
      if (typeof value === "string" && UUID.test(value)) return value.toLowerCase();
      throw invalidField(field, `\`${field}\` must be a UUID, like "${UUID_EXAMPLE}", not ${quoted(value)}`);
    },
  };
}

function shortText(what: string): Kind<string> {
  return textLike(
    (given) => given.trim() !== "" && given.length <= NAME_LENGTH_MAX && !/\p{Cc}/u.test(given),
    `${what} of at most ${NAME_LENGTH_MAX} characters without control characters`,
  );
}

/** Names of agents, each once. `star`: what `["*"]` stands for; null: it is refused. */
export function agentNames({ star }: { star: string | null }): Kind<readonly string[]> {
  const form = `an array of 1 to ${WORKER_AGENTS_MAX} agent ids${star === null ? "" : `, or ["${ALL}"] for ${star}`}`;
  return {
    shape: { type: "list", of: { type: "text" }, min: 1, max: WORKER_AGENTS_MAX },
    read: (value, field) => {
      if (!Array.isArray(value) || value.length === 0 || value.length > WORKER_AGENTS_MAX)
        throw invalidField(field, `\`${field}\` must be ${form}`);
      const names = value.map((agent, index) =>
        checkAgentId(checkText(agent, `${field}[${index}]`), `${field}[${index}]`),
      );
      if (names.includes(ALL) && star === null)
        throw invalidField(field, `\`${field}\`: "${ALL}" is not allowed here: list agent ids`);
      if (names.includes(ALL) && names.length > 1)
        throw invalidField(field, `\`${field}\`: send ["${ALL}"] alone, or list ids without it`);
      return [...new Set(names)];
    },
  };
}

export function labels(): Kind<Readonly<Record<string, string>>> {
  return {
    shape: { type: "object" },
    read: (value, field) => {
      const isLabel = (label: unknown) =>
        typeof label === "string" && label.length <= LABEL_LENGTH_MAX && !/\p{Cc}/u.test(label);
      const isFine =
        isObject(value) &&
        Object.keys(value).length <= LABELS_MAX &&
        Object.entries(value).every(([name, label]) => isLabel(name) && isLabel(label));
      if (isFine) return value as Record<string, string>;
      throw invalidField(
        field,
        `\`${field}\` must be an object with at most ${LABELS_MAX} texts of at most ${LABEL_LENGTH_MAX} characters, like {"gpu": "a100"}`,
      );
    },
  };
}

/** The registration of a worker. */
export const WORKER = {
  name: "NewWorker",
  noun: "worker",
  description: "A process elsewhere that pulls tasks.",
  fields: {
    name: required(shortText("a name"), { description: "For people. It need not be unique." }),
    instanceId: optional(uuid(), {
      description:
        "A UUID that identifies the process. A registration with the same one is the same worker, also with another key. Left out: each registration makes a new worker.",
    }),
    agents: required(agentNames({ star: "all that workers may run" }), {
      description: `The agents whose tasks it runs, at most ${WORKER_AGENTS_MAX}; \`["${ALL}"]\`: all that workers may run, for the role \`operator\` and above.`,
    }),
    slots: required(number({ min: 1, max: WORKER_SLOTS_MAX }), {
      description: "How many tasks it runs at once.",
      missing: `must be a whole number from 1 to ${WORKER_SLOTS_MAX}`,
    }),
    labels: optional(labels(), { description: "What it is, for people and for agents that require labels." }),
    version: optional(shortText("a version"), { description: "The version of its code." }),
    runtime: optional(shortText("a runtime"), { description: "What it runs on, like `python 3.12`." }),
    leaseMs: optional(number({ ...rangeOf(WORKER_LEASE_MS), unit: "milliseconds" }), {
      description: "After this long without a sign of life its tasks go to other workers.",
      default: `${WORKER_LEASE_MS.default}`,
    }),
    heartbeatMs: optional(
      number({ min: WORKER_HEARTBEAT_MS.min, max: WORKER_LEASE_MS.max, unit: "milliseconds" }),
      {
        description: "How often it sends a heartbeat while it holds tasks: at most a third of its lease.",
        default: `${WORKER_HEARTBEAT_MS.default}, or a third of its lease`,
      },
    ),
  },
  examples: [{ name: "py-1", agents: ["py"], slots: 4, version: "1.2.0" }],
} as const satisfies Schema;

const attemptToken = required(
  textLike((given) => /^[\w-]{1,200}$/.test(given), "the `attemptToken` of a claim"),
  { description: "From the response to the claim." },
);

function count(description: string) {
  return optional(number({ min: 0, max: Number.MAX_SAFE_INTEGER }), { description });
}

const USAGE_FIELDS = {
  inputTokens: count("Tokens that went to the model."),
  outputTokens: count("Tokens that the model wrote."),
  contextTokens: count("Tokens in the context of the last model call."),
  contextWindow: count("Tokens that fit into the context of the model."),
  costMicros: count("Millionths of a dollar."),
  model: optional(text(), { description: "The name of the model." }),
} as const satisfies FieldTable;

const usageField = optional(object(USAGE_FIELDS), {
  description: "What the attempt cost so far. A smaller figure than before changes nothing.",
});

const REPORT_FIELDS = {
  progress: optional(json(), {
    description: "Any JSON of up to 16 KiB. It becomes an event of the task; a larger one is left out.",
  }),
  usage: usageField,
  log: optional(
    list(
      object({
        at: optional(time(), { description: "RFC 3339.", default: "now" }),
        level: optional(choice(TASK_LOG_LEVELS), { default: "`info`" }),
        text: required(text(), { description: "One line." }),
      }),
      1_000,
    ),
    { description: "Log lines, which are stored with the task." },
  ),
  messagesAfter: optional(number({ min: 0, max: Number.MAX_SAFE_INTEGER }), {
    description:
      "Takes messages in mode `steer` for the task: the `position` of the last one that the worker has got, 0 at first. The response has those after it.",
  }),
} as const satisfies FieldTable;

const FINISH_FIELDS = {
  outcome: required(choice(WORKER_OUTCOMES), {
    description:
      "`done`: with a result. `failed`: with an error; retried if the task has retries left. `released`: back to the queue; it counts as a loss of the task.",
    missing: `must be one of ${WORKER_OUTCOMES.join(", ")}`,
  }),
  result: optional(json(), { description: "With `done`: any JSON.", default: "null" }),
  error: optional(text(), { description: "With `failed`: why." }),
  retryable: optional(boolean(), {
    description: "With `failed`: false if another try would fail again.",
    default: "true",
  }),
  retryAfterMs: optional(number({ min: 0, max: RETRY_AFTER_MS_MAX, unit: "milliseconds" }), {
    description: "With `failed`: retry not before this long, up to `maxBackoffMs` of the task.",
  }),
  usage: usageField,
} as const satisfies FieldTable;

/** What a worker says about the attempts that it holds. */
export const HEARTBEAT = {
  name: "WorkerHeartbeat",
  noun: "heartbeat",
  description: "All attempts that the worker holds, with what is new about them.",
  fields: {
    attempts: required(list(object({ attemptToken, ...REPORT_FIELDS }), WORKER_SLOTS_MAX), {
      description:
        "All attempts that it works on, each once. One that it leaves out twice in a row goes back.",
      missing: "must be an array, empty if the worker holds no attempt",
    }),
    freeSlots: optional(number({ min: 0, max: WORKER_SLOTS_MAX }), {
      description: "How many slots are free. For people who read the traffic; Rota counts by itself.",
    }),
  },
  examples: [{ attempts: [{ attemptToken: "att_q1Lw2n", progress: { percent: 50 } }] }],
} as const satisfies Schema;

/** The same for one attempt alone. */
export const ATTEMPT_HEARTBEAT = {
  name: "AttemptHeartbeat",
  noun: "heartbeat",
  description: "What is new about one attempt.",
  fields: REPORT_FIELDS,
  examples: [{ progress: { percent: 50 } }],
} as const satisfies Schema;

export const FINISH = {
  name: "WorkerFinish",
  noun: "finish",
  description: "How attempts ended.",
  fields: {
    attempts: required(list(object({ attemptToken, ...FINISH_FIELDS }), ATTEMPTS_PER_REQUEST_MAX, 1), {
      description: `1 to ${ATTEMPTS_PER_REQUEST_MAX} attempts.`,
      missing: `must be an array of 1 to ${ATTEMPTS_PER_REQUEST_MAX} attempts`,
    }),
  },
  examples: [{ attempts: [{ attemptToken: "att_q1Lw2n", outcome: "done", result: "hi" }] }],
} as const satisfies Schema;

/** Which workers to list. */
export const WORKER_PAGE = {
  noun: "page",
  refusesNull: true,
  fields: {
    limit: pageLimit(),
    cursor: optional(text(), { description: "`nextCursor` of the page before." }),
  },
} as const satisfies FilterSchema;

/** A request for tasks. */
export const CLAIM = {
  name: "WorkerClaim",
  noun: "claim",
  description: "A request for tasks.",
  fields: {
    claimId: required(uuid(), {
      description:
        "A new UUID for each claim. The same one again, when the response got lost, returns the same attempts.",
      missing: `is missing: it must be a UUID, like "${UUID_EXAMPLE}"`,
    }),
    max: required(number({ min: 1, max: Number.MAX_SAFE_INTEGER }), {
      description: "How many tasks it wants. It gets no more than it has free slots.",
      missing: "must be a whole number from 1 on: how many tasks to get",
    }),
    waitS: optional(number({ min: 0, max: CLAIM_WAIT_S_MAX, integer: false, unit: "seconds" }), {
      description: "How long to wait for a task.",
      default: "0",
    }),
    agents: optional(agentNames({ star: null }), { description: "Only tasks of these of its agents." }),
    finishes: optional(list(object({ attemptToken, ...FINISH_FIELDS }), ATTEMPTS_PER_REQUEST_MAX, 1), {
      description: `1 to ${ATTEMPTS_PER_REQUEST_MAX} attempts that have ended, as in a finish: their slots are free for this claim. Such a claim does not wait.`,
    }),
  },
  examples: [{ claimId: UUID_EXAMPLE, max: 4, waitS: 20 }],
} as const satisfies Schema;

export const ATTEMPT_FINISH = {
  name: "AttemptFinish",
  noun: "finish",
  description: "How one attempt ended.",
  fields: FINISH_FIELDS,
  examples: [{ outcome: "done", result: "hi" }],
} as const satisfies Schema;

export type WorkerInput = InputOf<typeof WORKER.fields>;
export type WorkerPageInput = InputOf<typeof WORKER_PAGE.fields>;
export type ClaimInput = InputOf<typeof CLAIM.fields>;
export type HeartbeatInput = InputOf<typeof HEARTBEAT.fields>;
export type AttemptHeartbeatInput = InputOf<typeof ATTEMPT_HEARTBEAT.fields>;
export type FinishInput = InputOf<typeof FINISH.fields>;
export type AttemptFinishInput = InputOf<typeof ATTEMPT_FINISH.fields>;

export type ParsedWorker = Omit<ReadOf<typeof WORKER.fields>, "leaseMs" | "heartbeatMs"> & {
  readonly leaseMs: number;
  readonly heartbeatMs: number;
};
export type ParsedReport = ReadOf<typeof HEARTBEAT.fields>["attempts"][number];
export type ParsedFinish = ReadOf<typeof FINISH.fields>["attempts"][number];

/** Parses the registration of a worker. Throws `invalid_field`. */
export function parseWorker(input: unknown): ParsedWorker {
  const read = readFields(WORKER, fieldsOf(input, '{"name": "py-1", "agents": ["py"], "slots": 4}'));
  const { leaseMs = WORKER_LEASE_MS.default } = read;
  const third = Math.max(Math.floor(leaseMs / 3), WORKER_HEARTBEAT_MS.min);
  return {
    ...read,
    leaseMs,
    heartbeatMs: Math.min(read.heartbeatMs ?? WORKER_HEARTBEAT_MS.default, third),
  };
}

export function parseClaim(input: unknown): ReadOf<typeof CLAIM.fields> {
  const read = readFields(CLAIM, fieldsOf(input, '{"claimId": "…", "max": 4, "waitS": 20}'));
  for (const [index, finish] of read.finishes?.entries() ?? []) checkFinish(finish, `finishes[${index}].`);
  return { ...read, max: Math.min(read.max, WORKER_SLOTS_MAX) };
}

export function parseHeartbeat(input: unknown): readonly ParsedReport[] {
  const { attempts } = readFields(HEARTBEAT, fieldsOf(input, '{"attempts": []}'));
  checkReports(attempts, (index) => `attempts[${index}].`);
  return attempts;
}

export function parseAttemptHeartbeat(token: string, input: unknown): ParsedReport {
  const read = readFields(ATTEMPT_HEARTBEAT, fieldsOf(input ?? {}, '{"progress": {"percent": 50}}'));
  const report = { attemptToken: token, ...read };
  checkReports([report], () => "");
  return report;
}

export function parseFinish(input: unknown): readonly ParsedFinish[] {
  const { attempts } = readFields(
    FINISH,
    fieldsOf(input, '{"attempts": [{"attemptToken": "…", "outcome": "done"}]}'),
  );
  for (const [index, finish] of attempts.entries()) checkFinish(finish, `attempts[${index}].`);
  return attempts;
}

export function parseAttemptFinish(token: string, input: unknown): ParsedFinish {
  const read = readFields(ATTEMPT_FINISH, fieldsOf(input, '{"outcome": "done", "result": "hi"}'));
  const finish = { attemptToken: token, ...read };
  checkFinish(finish, "");
  return finish;
}

function checkFinish({ outcome, error }: ParsedFinish, prefix: string): void {
  if (outcome !== "failed" || error !== undefined) return;
  const field = `${prefix}error`;
  throw invalidField(field, `\`${field}\` is missing: write why the attempt failed`);
}

function checkReports(reports: readonly ParsedReport[], field: (index: number) => string): void {
  const bytes = reports.reduce((sum, { progress, log }, index) => {
    const texts = [jsonTextOf(progress, `${field(index)}progress`), JSON.stringify(log)];
    return sum + utf8Length(texts.join(""));
  }, 0);
  if (bytes <= REPORT_BYTES_MAX) return;
  throw invalidField(
    "attempts",
    `\`attempts\` has ${bytes} bytes of progress and log lines, and a heartbeat may have ${REPORT_BYTES_MAX}: send fewer lines at once`,
  );
}

/** The text of a value that was parsed from JSON. */
function jsonTextOf(value: unknown, field: string): string {
  const tooDeep = () =>
    invalidField(field, `\`${field}\` is nested deeper than ${JSON_DEPTH_MAX} levels: flatten it`);
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    // The stack overflowed.
    if (error instanceof RangeError) throw tooDeep();
    throw error;
  }
  if (text !== undefined && isDeeperThan(JSON_DEPTH_MAX, text)) throw tooDeep();
  return text ?? "";
}

function fieldsOf(input: unknown, example: string): Fields {
  if (isObject(input)) return input;
  throw invalidField("body", `the body must be an object, like ${example}`);
}

function rangeOf({ min, max }: { min: number; max: number }): { min: number; max: number } {
  return { min, max };
}

function list<In, Out>(kind: Kind<In, Out>, max: number, min = 0): Kind<readonly In[], readonly Out[]> {
  return {
    shape: { type: "list", of: kind.shape, min, max },
    read: (value, field, reading) => {
      if (!Array.isArray(value) || value.length < min || value.length > max)
        throw invalidField(field, `\`${field}\` must be an array of ${min} to ${max} entries`);
      return value.map((item, index) => kind.read(item, `${field}[${index}]`, reading));
    },
  };
}
