import { DEFAULT_AGENT } from "../agent.ts";
import { callbackUrlOf } from "../callback-url.ts";
import { RotaError } from "../errors.ts";
import { FALLBACK_LANE, TASKS_LANE } from "../lane.ts";
import { DEFAULT_PRIORITY } from "../priority.ts";
import type { Redactor } from "../redactor.ts";
import type { RetryPolicy } from "../retry-policy.ts";
import { tabKey } from "../tab-key.ts";
import type { TaskKind, TaskSpec, TaskWork } from "../task.ts";
import { isDeeperThan } from "../text/json-depth.ts";
import { jsonText } from "../text/json-text.ts";
import { keepOwn, ownLength } from "../text/own-json.ts";
import { copyPlainJson } from "../text/plain-json.ts";
import { utf8Length } from "../text/utf8-length.ts";
import { codeList, type Fields, invalidField, isObject, withoutNulls } from "./field-checks.ts";
import { refuseMasks } from "./masked-input.ts";
import { readFields } from "./read-fields.ts";
import type { ReadOf } from "./schema.ts";
import { isConcurrencyKey, KEYED_TASK, KIND_FIELDS, ONE_OF, TASK } from "./task-schema.ts";

/** The largest task, as JSON. */
export const TASK_BYTES_MAX = 1_048_576;
/** How deep it may be nested: recursive JSON parsers, in any language, must not overflow their stack. */
export const JSON_DEPTH_MAX = 500;
/** The deadline of an action that sets none, from the time at which it could first start. */
const ACTION_DEADLINE_MS = 60_000;
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

const KINDS = Object.keys(KIND_FIELDS) as TaskKind[];
/** The names of the fields of each kind, the one that makes the kind first. */
const KIND_NAMES = Object.fromEntries(
  KINDS.map((kind) => [kind, Object.keys(KIND_FIELDS[kind])]),
) as unknown as Record<TaskKind, readonly [keyof TaskInput, ...(keyof TaskInput)[]]>;

const DATA_FIELDS = [...Object.values(KIND_NAMES).flat(), "metadata"];

/** The fields of a task after their checks. */
type TaskInput = ReadOf<typeof KEYED_TASK.fields>;

/**
 * Checks the input of a task and adds all defaults. Throws `invalid_field`, naming the field and what to write instead.
 */
export function parseTaskInput(
  given: unknown,
  defaults: TaskDefaults,
  { keyed = false }: { keyed?: boolean } = {},
): ParsedTask {
  const all = asJson(given);
  const input: TaskInput = readFields(keyed ? KEYED_TASK : TASK, all, defaults);
  const kind = kindOf(input);
  const agent = agentOf(input, kind);
  checkMoments(input, defaults.now);
  const retryPolicy = retryPolicyOf(input, kind, defaults.retryPolicy);
  const { metadata, key, preemptible = false, runAt = null, deadline = null } = input;
  const work = workOf(input, kind);
  refuseMasks({ work, metadata }, defaults.redactor);
  const spec = {
    work,
    ...(metadata === undefined ? {} : { metadata }),
    retryPolicy,
    // An action is limited by its deadline, all other kinds by the timeout of an attempt.
    timeoutMs: input.timeout ?? (kind === "action" ? null : defaults.timeoutMs),
    ...(key === undefined ? {} : { key }),
    ...(preemptible ? { preemptible } : {}),
  };
  if (mayGrow(all)) checkSize(jsonText(dataOf(all)) ?? "");
  return {
    agent,
    lane: laneOf(input, kind, agent, defaults),
    priority: input.priority ?? DEFAULT_PRIORITY,
    runAt,
    deadline,
    deadlineAfterMs: kind === "action" && deadline === null ? ACTION_DEADLINE_MS : null,
    maxRetriesIfLost: retriesIfLost(input, kind, retryPolicy),
    maxQueued: defaults.maxQueuedOf(agent),
    session: sessionOf(input, defaults),
    preemptible,
    concurrencyKey: concurrencyKeyOf(input, work),
    callbackUrl: callbackUrlOf(input),
    dependsOn: input.dependsOn ?? [],
    idempotency: idempotencyOf(input, all),
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
 * Rota parsed itself is not copied.
 */
function asJson(given: unknown): Fields {
  if (!isObject(given)) {
    throw new RotaError("invalid_field", `a task must be an object with exactly one of ${ONE_OF}`);
  }
  if (ownLength(given) !== undefined) return given;
  return (copyPlainJson(given) as Fields | undefined) ?? copyThroughText(given);
}

function copyThroughText(given: Fields): Fields {
  refuseInfinite(given);
  // A Date is a valid time: as JSON it is the text of the same time.
  const text = stringify(given);
  if (!fits(text)) checkSize(stringify(dataOf(given)));
  if (isDeeperThan(JSON_DEPTH_MAX, text)) throw tooDeep();
  return JSON.parse(text) as Fields;
}

/** Numbers can grow when they are serialized again: `1e20` takes five times as many characters. */
const NUMBER_GROWTH = 6;

/** Whether input that arrived as JSON within the limit could exceed it when it is stored. */
function mayGrow(given: Fields): boolean {
  return (ownLength(given) ?? 0) * NUMBER_GROWTH > TASK_BYTES_MAX;
}

/**
 * The fields that hold data of any size. Only they count: the others have limits of their own, and Rota adds some of them, so that
 * the largest body is a task, or a message, and can be submitted again.
 */
function dataOf(given: Fields): Fields {
  return Object.fromEntries(DATA_FIELDS.map((name) => [name, given[name]]));
}

function fits(json: string): boolean {
  // A character takes at most three bytes.
  return json.length * 3 <= TASK_BYTES_MAX || utf8Length(json) <= TASK_BYTES_MAX;
}

function checkSize(json: string): void {
  if (fits(json)) return;
  throw new RotaError(
    "invalid_field",
    `the task is larger than ${TASK_BYTES_MAX} bytes of JSON: store large data elsewhere, and send a reference to it`,
  );
}

function stringify(given: Fields): string {
  for (const [field, value] of Object.entries(given)) {
    if (value instanceof Date && Number.isNaN(value.getTime())) {
      throw invalidField(field, `\`${field}\` is an invalid Date`);
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
  return new RotaError(
    "invalid_field",
    `the task is nested deeper than ${JSON_DEPTH_MAX} levels: flatten it`,
  );
}

function kindOf(input: TaskInput): TaskKind {
  const kinds = KINDS.filter((kind) => input[KIND_NAMES[kind][0]] !== undefined);
  const [kind, second] = kinds;
  if (kind === undefined) {
    throw new RotaError("invalid_field", `a task needs exactly one of ${ONE_OF}; there is none`);
  }
  if (second !== undefined) {
    const found = codeList(kinds.map((each) => KIND_NAMES[each][0]));
    throw invalidField(KIND_NAMES[second][0], `a task needs exactly one of ${ONE_OF}; there are ${found}`);
  }
  refuseFieldsOfOthers(input, kind);
  return kind;
}

function refuseFieldsOfOthers(input: TaskInput, kind: TaskKind): void {
  for (const other of KINDS) {
    const stray = other === kind ? undefined : KIND_NAMES[other].find((field) => input[field] !== undefined);
    if (stray !== undefined) {
      const [main, given] = [KIND_NAMES[other][0], KIND_NAMES[kind][0]];
      throw invalidField(stray, `\`${stray}\` goes with \`${main}\`, not with \`${given}\``);
    }
  }
}

/** The fields of the kind that are given, in the order of the schema. */
function workOf(input: TaskInput, kind: TaskKind): TaskWork {
  const work: Record<string, unknown> = { kind };
  for (const field of KIND_NAMES[kind]) {
    if (input[field] !== undefined) work[field] = input[field];
  }
  return work as unknown as TaskWork;
}

function agentOf({ agentId }: TaskInput, kind: TaskKind): string {
  if (agentId === undefined && kind === "action") {
    throw invalidField("agentId", "`agentId` is required for an `action`: the agent that does it");
  }
  return agentId ?? DEFAULT_AGENT;
}

function laneOf({ lane }: TaskInput, kind: TaskKind, agent: string, defaults: TaskDefaults): string {
  const byKind = kind === "message" ? FALLBACK_LANE : TASKS_LANE;
  const wanted = lane ?? defaults.laneOf(agent) ?? byKind;
  return defaults.hasLane(wanted) ? wanted : FALLBACK_LANE;
}

function sessionOf({ sessionKey }: TaskInput, defaults: TaskDefaults): ParsedTask["session"] {
  if (sessionKey === undefined) return null;
  return { key: sessionKey, maxConcurrent: defaults.sessionMaxConcurrent };
}

function checkMoments({ runAt, deadline }: TaskInput, now: number): void {
  if (deadline === undefined) return;
  if (deadline <= now) {
    throw invalidField("deadline", "`deadline` is in the past: write a later time");
  }
  if (runAt !== undefined && deadline <= runAt) {
    throw invalidField(
      "deadline",
      "`deadline` must be after `runAt`, or the task could never start: write a later `deadline`, or an earlier `runAt`",
    );
  }
}

/** A repeated request is compared with what the caller wrote. */
function idempotencyOf({ idempotencyKey: key }: TaskInput, all: Fields): ParsedTask["idempotency"] {
  if (key === undefined) return null;
  const { idempotencyKey: _, ...request } = withoutNulls(all, ["payload"]);
  return { key, request: keepOwn(all, request) };
}

/** Actions in one tab of a browser run one at a time by default. Null: it has no key. */
function concurrencyKeyOf({ concurrencyKey: key }: TaskInput, work: TaskWork): string | null {
  if (key !== undefined) return key || null;
  const tab = work.kind === "action" ? work.tabId : undefined;
  if (tab === undefined || tab === "") return null;
  if (isConcurrencyKey(tabKey(tab))) return tabKey(tab);
  throw invalidField(
    "tabId",
    "`tabId` must be at most 252 characters without control characters: actions in one tab go one at a time",
  );
}

function retryPolicyOf({ retryPolicy }: TaskInput, kind: TaskKind, base: RetryPolicy): RetryPolicy {
  const own = kind === "instruction" ? base : { ...base, maxRetries: 0 };
  return retryPolicy === undefined ? own : { ...own, ...retryPolicy };
}

/** A message is not retried by default, but it gets one retry if its node is lost, unless it sets `maxRetries`. */
function retriesIfLost({ retryPolicy }: TaskInput, kind: TaskKind, { maxRetries }: RetryPolicy): number {
  return kind === "message" && retryPolicy?.maxRetries === undefined ? 1 : maxRetries;
}
