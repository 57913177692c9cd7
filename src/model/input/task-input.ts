import { checkAgentId, DEFAULT_AGENT } from "../agent.ts";
import { callbackUrlOf } from "../callback-url.ts";
import { RotaError } from "../errors.ts";
import { FALLBACK_LANE, LANE_NAME_FORM, TASKS_LANE } from "../lane.ts";
import { DEFAULT_PRIORITY } from "../priority.ts";
import type { Redactor } from "../redactor.ts";
import type { RetryPolicy } from "../retry-policy.ts";
import { optionalSessionKey } from "../session-key.ts";
import { tabKey } from "../tab-key.ts";
import type { TaskKind, TaskSpec, TaskWork } from "../task.ts";
import { isTaskId } from "../task-id.ts";
import { isDeeperThan } from "../text/json-depth.ts";
import { jsonText } from "../text/json-text.ts";
import { keepOwn, ownLength } from "../text/own-json.ts";
import { copyPlainJson } from "../text/plain-json.ts";
import {
  checkKnown,
  codeList,
  type Fields,
  invalidField,
  isObject,
  type NumberRange,
  optionalBoolean,
  optionalMoment,
  optionalNumber,
  optionalObject,
  optionalText,
  requiredText,
  withoutNulls,
} from "./field-checks.ts";
import { refuseMasks } from "./masked-input.ts";
import { optionalPriority } from "./priority-input.ts";
import { checkRetryPolicy } from "./retry-policy-input.ts";

/** The largest task, as JSON. */
export const TASK_BYTES_MAX = 1_048_576;
/** How deep it may be nested: recursive JSON parsers, in any language, must not overflow their stack. */
export const JSON_DEPTH_MAX = 500;
export const TIMEOUT_MIN_MS = 1_000;
/** The deadline of an action that sets none, from the time at which it could first start. */
const ACTION_DEADLINE_MS = 60_000;
/** The most dependencies of a task. */
export const DEPENDS_ON_MAX = 100;
const KEY = /^(?!\s)[^\p{Cc}\p{Cs}]{1,128}(?<!\s)$/u;
const CONCURRENCY_KEY = /^[^\p{Cc}\p{Cs}]{1,256}$/u;
/** The parsed input of a task, with all defaults. Times are milliseconds since 1970. */
export interface ParsedTask {
  readonly agent: string;
  readonly lane: string;
  readonly priority: number;
  readonly runAt: number | null;
  readonly deadline: number | null;
  readonly deadlineAfterMs: number | null;
  readonly maxRetriesIfLost: number;
  readonly maxQueued: number | null;
  /** Its session; `maxConcurrent` is the default if the session sets none. Null: it has none. */
  readonly session: { readonly key: string; readonly maxConcurrent: number } | null;
  readonly preemptible: boolean;
  /** Tasks of a tenant with the same key run one at a time; null: it has none. */
  readonly concurrencyKey: string | null;
  readonly callbackUrl: string | null;
  /** As written: ids, or keys of other tasks of the same request. */
  readonly dependsOn: readonly string[];
  /** The key with its request: a second request with the same key must be the same. */
  readonly idempotency: { readonly key: string; readonly request: Fields } | null;
  readonly spec: TaskSpec;
}

/** Defaults for what a task does not set. */
export interface TaskDefaults {
  readonly now: number;
  readonly timeoutMs: number;
  readonly timeoutMaxMs: number;
  /** For instructions. The other kinds are not retried unless they set `maxRetries`, but have the same backoff. */
  readonly retryPolicy: RetryPolicy;
  readonly hasLane: (lane: string) => boolean;
  /** The lane of an agent's tasks; undefined: not set. */
  readonly laneOf: (agent: string) => string | undefined;
  /** How many of an agent's tasks may wait; null: the limit for all agents applies. */
  readonly maxQueuedOf: (agent: string) => number | null;
  /** How many tasks of a session run at once by default. */
  readonly sessionMaxConcurrent: number;
  /** Finds masks in the input, which are refused. */
  readonly redactor: Redactor;
}

const KIND_FIELDS = {
  action: ["action", "tabId", "ref", "selector", "params"],
  instruction: ["instruction", "llmConfig"],
  message: ["message"],
  custom: ["payload"],
} as const satisfies Record<TaskKind, readonly string[]>;

const KINDS = Object.keys(KIND_FIELDS) as TaskKind[];

const COMMON_FIELDS = [
  "agentId",
  "priority",
  "deadline",
  "timeout",
  "runAt",
  "retryPolicy",
  "callbackUrl",
  "webhookUrl",
  "dependsOn",
  "idempotencyKey",
  "lane",
  "sessionKey",
  "preemptible",
  "concurrencyKey",
  "metadata",
] as const;

const ALL_FIELDS: readonly string[] = [...Object.values(KIND_FIELDS).flat(), ...COMMON_FIELDS];
/** A task that is submitted with others can have a key, which they can depend on. */
const KEYED_FIELDS: readonly string[] = [...ALL_FIELDS, "key"];
const SCHEDULE_FIELDS = ["cron", "schedule", "every", "tz", "timezone"] as const;
const ONE_OF = codeList(["action", "instruction", "message", "payload"]);

/**
 * Checks the input of a task and adds all defaults. Throws `invalid_field`, naming the field and what to write instead.
 */
export function parseTaskInput(
  given: unknown,
  defaults: TaskDefaults,
  { keyed = false }: { keyed?: boolean } = {},
): ParsedTask {
  const all = asJson(given, keyed ? KEYED_FIELDS : ALL_FIELDS);
  const input = withoutNulls(all, ["payload"]);
  const kind = kindOf(input);
  const agent = parseAgent(input, kind);
  const { runAt, deadline } = parseMoments(input, defaults.now);
  const retryPolicy = parseRetryPolicy(input, kind, defaults.retryPolicy);
  const metadata = optionalObject(input, "metadata");
  const key = parseKey(input);
  const preemptible = optionalBoolean(input, "preemptible") ?? false;
  const work = parseWork(input, kind);
  refuseMasks({ work, metadata }, defaults.redactor);
  const spec = {
    work,
    ...(metadata === undefined ? {} : { metadata }),
    retryPolicy,
    timeoutMs: parseTimeout(input, kind, defaults),
    ...(key === undefined ? {} : { key }),
    ...(preemptible ? { preemptible } : {}),
  };
  if (mayGrow(all)) checkSize(jsonText(spec) ?? "");
  return {
    agent,
    lane: parseLane(input, kind, agent, defaults),
    priority: optionalPriority(input) ?? DEFAULT_PRIORITY,
    runAt,
    deadline,
    deadlineAfterMs: kind === "action" && deadline === null ? ACTION_DEADLINE_MS : null,
    maxRetriesIfLost: retriesIfLost(input, kind, retryPolicy),
    maxQueued: defaults.maxQueuedOf(agent),
    session: parseSession(input, defaults),
    preemptible,
    concurrencyKey: parseConcurrencyKey(input, work),
    callbackUrl: callbackUrlOf(input),
    dependsOn: parseDependsOn(input),
    idempotency: parseIdempotency(input),
    spec,
  };
}

/** JSON would turn a number like 1e999 into null, which counts as left out. */
function refuseInfinite(fields: Fields, prefix = ""): void {
  for (const name of Object.keys(fields)) {
    const value = fields[name];
    const field = `${prefix}${name}`;
    if (typeof value === "number" && !Number.isFinite(value) && field !== "payload") {
      throw invalidField(field, `\`${field}\` must be a value that JSON can hold, not ${value}`);
    }
    if (field === "retryPolicy" && isObject(value)) refuseInfinite(value, "retryPolicy.");
  }
}

/**
 * A copy of the input as plain JSON, which the caller can no longer change, without values that cannot be stored. Input that
 * Rota parsed itself is not copied. Refuses unknown fields.
 */
function asJson(given: unknown, known: readonly string[]): Fields {
  if (!isObject(given)) {
    throw new RotaError("invalid_field", `a task must be an object with exactly one of ${ONE_OF}`);
  }
  if (ownLength(given) !== undefined) {
    refuseUnknown(given, known);
    refuseInfinite(given);
    return given;
  }
  const fields = (copyPlainJson(given) as Fields | undefined) ?? copyThroughText(given);
  refuseUnknown(fields, known);
  return fields;
}

function copyThroughText(given: Fields): Fields {
  refuseInfinite(given);
  // A Date is a valid time: as JSON it is the text of the same time.
  const text = stringify(given);
  checkSize(text);
  if (isDeeperThan(JSON_DEPTH_MAX, text)) throw tooDeep();
  return JSON.parse(text) as Fields;
}

function refuseUnknown(fields: Fields, known: readonly string[]): void {
  refuseScheduleFields(fields);
  checkKnown(fields, known);
}

/** Numbers can grow when they are serialized again: `1e20` takes five times as many characters. */
const NUMBER_GROWTH = 6;

/** Whether input that arrived as JSON within the limit could exceed it when it is stored. */
function mayGrow(given: Fields): boolean {
  return (ownLength(given) ?? 0) * NUMBER_GROWTH > TASK_BYTES_MAX;
}

function checkSize(json: string): void {
  if (Buffer.byteLength(json) <= TASK_BYTES_MAX) return;
  throw new RotaError("invalid_field", `the task is larger than ${TASK_BYTES_MAX} bytes of JSON`);
}

function stringify(given: Fields): string {
  for (const [field, value] of Object.entries(given)) {
    if (value instanceof Date && Number.isNaN(value.getTime())) {
      throw invalidField(field, `\`${field}\` is a Date that names no moment`);
    }
    if (typeof value === "function" || typeof value === "symbol") {
      throw invalidField(field, `\`${field}\` is not JSON: it is a ${typeof value}`);
    }
  }
  try {
    return JSON.stringify(given);
  } catch (error) {
    // The stack overflowed before there was a text to measure.
    if (error instanceof RangeError) throw tooDeep();
    const [line] = String(error instanceof Error ? error.message : error).split("\n", 1);
    throw new RotaError("invalid_field", `the task is not JSON: ${line}`, { cause: error });
  }
}

function tooDeep(): RotaError {
  return new RotaError("invalid_field", `the task is nested deeper than ${JSON_DEPTH_MAX} levels`);
}

function kindOf(input: Fields): TaskKind {
  const kinds = KINDS.filter((kind) => input[KIND_FIELDS[kind][0]] !== undefined);
  const [kind, second] = kinds;
  if (kind === undefined) {
    throw new RotaError("invalid_field", `a task needs exactly one of ${ONE_OF}; there is none`);
  }
  if (second !== undefined) {
    const found = codeList(kinds.map((each) => KIND_FIELDS[each][0]));
    throw new RotaError("invalid_field", `a task needs exactly one of ${ONE_OF}; there are ${found}`);
  }
  refuseFieldsOfOthers(input, kind);
  return kind;
}

/** A task runs once: a caller with these fields wants a schedule. */
function refuseScheduleFields(input: Fields): void {
  const field = SCHEDULE_FIELDS.find((name) => input[name] !== undefined);
  if (field === undefined) return;
  throw invalidField(
    field,
    `unknown field \`${field}\`: a task runs once; send \`schedule\` to POST /v1/schedules for what is to run again and again`,
  );
}

function refuseFieldsOfOthers(input: Fields, kind: TaskKind): void {
  for (const other of KINDS) {
    const fields: readonly string[] = KIND_FIELDS[other];
    const stray = other === kind ? undefined : fields.find((field) => input[field] !== undefined);
    if (stray !== undefined) {
      const [main, given] = [KIND_FIELDS[other][0], KIND_FIELDS[kind][0]];
      throw invalidField(stray, `\`${stray}\` goes with \`${main}\`, not with \`${given}\``);
    }
  }
}

function parseWork(input: Fields, kind: TaskKind): TaskWork {
  switch (kind) {
    case "action": {
      const params = optionalObject(input, "params");
      return {
        kind,
        action: requiredText(input, "action"),
        ...given("tabId", optionalText(input, "tabId")),
        ...given("ref", optionalText(input, "ref")),
        ...given("selector", optionalText(input, "selector")),
        ...given("params", params),
      };
    }
    case "instruction":
      return {
        kind,
        instruction: requiredText(input, "instruction"),
        ...given("llmConfig", optionalObject(input, "llmConfig")),
      };
    case "message":
      return { kind, message: requiredText(input, "message") };
    case "custom":
      return { kind, payload: input["payload"] };
  }
}

function given<Key extends string, Value>(key: Key, value: Value | undefined): { [K in Key]?: Value } {
  return (value === undefined ? {} : { [key]: value }) as { [K in Key]?: Value };
}

function parseAgent(input: Fields, kind: TaskKind): string {
  const agent = optionalText(input, "agentId");
  if (agent === undefined && kind === "action") {
    throw invalidField("agentId", "`agentId` is required for an `action`: the agent that does it");
  }
  return agent === undefined ? DEFAULT_AGENT : checkAgentId(agent);
}

/** Refuses empty names and control characters. The name of an unknown lane, even an impossible one, means `main`. */
export function optionalLane(fields: Fields): string | undefined {
  const lane = optionalText(fields, "lane");
  if (lane === undefined || (lane.trim() !== "" && !/\p{Cc}/u.test(lane))) return lane;
  throw invalidField("lane", `\`lane\` must be the name of a lane, ${LANE_NAME_FORM}`);
}

function parseLane(input: Fields, kind: TaskKind, agent: string, defaults: TaskDefaults): string {
  const byKind = kind === "message" ? FALLBACK_LANE : TASKS_LANE;
  const lane = optionalLane(input) ?? defaults.laneOf(agent) ?? byKind;
  return defaults.hasLane(lane) ? lane : FALLBACK_LANE;
}

function parseSession(input: Fields, { sessionMaxConcurrent }: TaskDefaults): ParsedTask["session"] {
  const key = optionalSessionKey(input);
  return key === undefined ? null : { key, maxConcurrent: sessionMaxConcurrent };
}

function parseMoments(input: Fields, now: number): { runAt: number | null; deadline: number | null } {
  const runAt = optionalMoment(input, "runAt") ?? null;
  const deadline = optionalMoment(input, "deadline") ?? null;
  if (deadline !== null && deadline <= now) {
    throw invalidField("deadline", "`deadline` is in the past: write a moment that is still to come");
  }
  if (deadline !== null && runAt !== null && deadline <= runAt) {
    throw invalidField("deadline", "`deadline` must be after `runAt`: the task could never start");
  }
  return { runAt, deadline };
}

/** The dependencies of a task, without duplicates. Throws `invalid_field`. */
export function parseDependsOn(input: Fields): string[] {
  const names = input["dependsOn"];
  if (names === undefined || names === null) return [];
  if (!Array.isArray(names) || names.some((name) => typeof name !== "string" || name === "")) {
    throw invalidField(
      "dependsOn",
      "`dependsOn` must be an array of the ids of tasks, or of keys in a batch",
    );
  }
  const once = [...new Set<string>(names)];
  if (once.length > DEPENDS_ON_MAX) {
    throw invalidField(
      "dependsOn",
      `\`dependsOn\` names ${once.length} tasks, and may name ${DEPENDS_ON_MAX}`,
    );
  }
  return once;
}

function parseIdempotency(input: Fields): ParsedTask["idempotency"] {
  if (input["idempotencyKey"] === undefined) return null;
  const { idempotencyKey: _, ...request } = input;
  const key = optionalText(input, "idempotencyKey") ?? "";
  if (!KEY.test(key)) {
    throw invalidField(
      "idempotencyKey",
      "`idempotencyKey` must be 1 to 128 characters without spaces at its ends",
    );
  }
  return { key, request: keepOwn(input, request) };
}

function parseKey(input: Fields): string | undefined {
  const key = optionalText(input, "key");
  if (key === undefined || (KEY.test(key) && !isTaskId(key))) return key;
  throw invalidField(
    "key",
    "`key` must be 1 to 128 characters without spaces at its ends, and not like the id of a task",
  );
}

/** Actions in one tab of a browser run one at a time by default. Null: it has no key. */
function parseConcurrencyKey(input: Fields, work: TaskWork): string | null {
  const key = input["concurrencyKey"] === null ? undefined : optionalText(input, "concurrencyKey");
  if (key !== undefined) {
    if (key === "" || CONCURRENCY_KEY.test(key)) return key || null;
    throw invalidField(
      "concurrencyKey",
      '`concurrencyKey` must be 1 to 256 characters without control characters, or "" for none',
    );
  }
  const tab = work.kind === "action" ? work.tabId : undefined;
  if (tab === undefined || tab === "") return null;
  if (CONCURRENCY_KEY.test(tabKey(tab))) return tabKey(tab);
  throw invalidField(
    "tabId",
    "`tabId` must be at most 252 characters without control characters: actions in one tab go one at a time",
  );
}

/** The range of `timeout`. */
export function timeoutRange(max: number): NumberRange {
  return { min: TIMEOUT_MIN_MS, max, unit: "milliseconds", maxOption: "timeouts.maxMs" };
}

/** An action is limited by its deadline, all other kinds by the timeout of an attempt. */
function parseTimeout(input: Fields, kind: TaskKind, defaults: TaskDefaults): number | null {
  return (
    optionalNumber(input, "timeout", timeoutRange(defaults.timeoutMaxMs)) ??
    (kind === "action" ? null : defaults.timeoutMs)
  );
}

function parseRetryPolicy(input: Fields, kind: TaskKind, base: RetryPolicy): RetryPolicy {
  const own = kind === "instruction" ? base : { ...base, maxRetries: 0 };
  const fields = optionalObject(input, "retryPolicy");
  return fields === undefined ? own : { ...own, ...checkRetryPolicy(fields, "retryPolicy.") };
}

/** A message is not retried by default, but it gets one retry if its node is lost, unless it sets `maxRetries`. */
function retriesIfLost(input: Fields, kind: TaskKind, { maxRetries }: RetryPolicy): number {
  const said = ((input["retryPolicy"] as Fields | undefined)?.["maxRetries"] ?? undefined) !== undefined;
  return kind === "message" && !said ? 1 : maxRetries;
}
