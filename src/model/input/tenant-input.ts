import { AGENTS_MAX, DEFAULT_MAX_AGENTS, DEFAULT_MAX_SCHEDULES, DEFAULT_MAX_SESSIONS } from "../tenant.ts";
import { checkText, type Fields, insteadOf, invalidField, isObject, quoted } from "./field-checks.ts";
import { changesObject, number } from "./kinds.ts";
import { readChanges, readFields } from "./read-fields.ts";
import { type Kind, optional, required, type Schema } from "./schema.ts";

const TENANT_ID = /^[A-Za-z0-9._-]{1,64}$/;
const NAME_LENGTH_MAX = 128;
/** More than this is a typing mistake. */
const LIMIT = { min: 0, max: 10_000_000 } as const;

/** The limits of a tenant. Null: the default. */
export const LIMIT_FIELDS = {
  maxQueued: optional(number(LIMIT), {
    description: "Tasks that wait: one more is refused with `queue_full`.",
    flag: "--max-queued <number>",
  }),
  maxInflight: optional(number(LIMIT), {
    description: "Tasks that run, over all lanes and nodes.",
    flag: "--max-inflight <number>",
  }),
  maxSchedules: optional(number(LIMIT), {
    description: "Schedules it has that are active or paused.",
    default: `${DEFAULT_MAX_SCHEDULES}, and none for the tenant \`default\``,
    flag: "--max-schedules <number>",
  }),
  maxSessions: optional(number(LIMIT), {
    description: "Sessions with settings, which stay until they are deleted.",
    default: `${DEFAULT_MAX_SESSIONS}, and none for the tenant \`default\``,
    flag: "--max-sessions <number>",
  }),
  maxStreams: optional(number(LIMIT), {
    description: "Event and notification streams that are open, on each node.",
    flag: "--max-streams <number>",
  }),
  // A process keeps all of them in memory.
  maxAgents: optional(number({ min: 0, max: AGENTS_MAX }), {
    description: "Agents that it stores.",
    default: `${DEFAULT_MAX_AGENTS}, and ${AGENTS_MAX} for the tenant \`default\``,
    flag: "--max-agents <number>",
  }),
  maxStoredBytes: optional(number({ min: 0, max: Number.MAX_SAFE_INTEGER }), {
    description:
      "What its tasks may take, as `storedBytes` counts it: beyond it tasks and messages are refused with `quota_exceeded`; results are always stored.",
    flag: "--max-stored-bytes <number>",
  }),
} as const;

const FIELDS = {
  name: required(tenantName(), {
    missing: 'is missing: say what the tenant is called, like {"name": "Acme"}',
  }),
  limits: optional(changesObject(LIMIT_FIELDS)),
} as const;

/** The input of a tenant. */
export const TENANT = {
  name: "NewTenant",
  noun: "tenant",
  description:
    "A customer or team whose work is kept apart from that of others. A limit that is left out, or null, is the default.",
  fields: FIELDS,
  examples: [{ name: "acme" }, { name: "acme", limits: { maxQueued: 500, maxInflight: 10 } }],
} as const satisfies Schema;

/** The changes of a tenant. */
export const TENANT_CHANGES = {
  name: "TenantChanges",
  noun: "tenant",
  isChanges: true,
  description: "Fields that are left out stay; null resets a limit to its default.",
  fields: FIELDS,
  examples: [{ name: "Acme Ltd" }, { limits: { maxInflight: null } }],
} as const satisfies Schema;

/** Null: the default. */
export type ParsedTenantLimits = Readonly<Record<keyof typeof LIMIT_FIELDS, number | null>>;

const NO_LIMITS = Object.fromEntries(
  Object.keys(LIMIT_FIELDS).map((limit) => [limit, null]),
) as ParsedTenantLimits;

export interface ParsedTenantChanges {
  readonly name?: string;
  readonly limits?: Partial<ParsedTenantLimits>;
}

export function isTenantId(id: unknown): id is string {
  return typeof id === "string" && TENANT_ID.test(id);
}

/** Checks the id of a tenant. Throws `invalid_field`. */
export function checkTenantId(id: unknown): string {
  if (isTenantId(id)) return id;
  throw invalidField(
    "tenantId",
    `the id of a tenant is 1 to 64 of the characters A–Z a–z 0–9 . _ -, not ${quoted(id)}`,
  );
}

/** Parses the input of a new tenant. Throws `invalid_field`. */
export function parseTenantInput(input: unknown): { name: string; limits: ParsedTenantLimits } {
  const { name, limits } = readFields(TENANT, asFields(input));
  return { name, limits: { ...NO_LIMITS, ...limits } };
}

/** Parses the changes of a tenant. Throws `invalid_field`. */
export function parseTenantChanges(input: unknown): ParsedTenantChanges {
  const { limits, ...changes } = readChanges(TENANT_CHANGES, asFields(input));
  // Null resets all limits.
  return { ...changes, ...(limits === undefined ? {} : { limits: limits ?? NO_LIMITS }) };
}

function asFields(input: unknown): Fields {
  if (isObject(input)) return input;
  throw invalidField("tenant", `a tenant must be an object, like {"name": "Acme"}${insteadOf(input)}`);
}

function tenantName(): Kind<string> {
  return {
    shape: { type: "text" },
    read: (value, field) => {
      const name = checkText(value, field).trim();
      const isLine = name !== "" && !/\p{Cc}/u.test(name) && name.isWellFormed();
      if (isLine && name.length <= NAME_LENGTH_MAX) return name;
      throw invalidField(
        field,
        `\`${field}\` must be 1 to ${NAME_LENGTH_MAX} characters on one line, not ${quoted(value)}`,
      );
    },
  };
}
