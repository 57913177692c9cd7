import { AGENTS_MAX } from "../tenant.ts";
import {
  checkKnown,
  type Fields,
  invalidField,
  isObject,
  optionalNumber,
  optionalObject,
  optionalText,
  quoted,
} from "./field-checks.ts";

const TENANT_ID = /^[A-Za-z0-9._-]{1,64}$/;
const NAME_LENGTH_MAX = 128;
/** More than this is a typing mistake. */
const LIMIT = { min: 0, max: 10_000_000 } as const;

const LIMITS = {
  maxQueued: LIMIT,
  maxInflight: LIMIT,
  maxSchedules: LIMIT,
  maxSessions: LIMIT,
  maxStreams: LIMIT,
  // A process keeps all of them in memory.
  maxAgents: { min: 0, max: AGENTS_MAX },
  maxStoredBytes: { min: 0, max: Number.MAX_SAFE_INTEGER },
} as const;

const LIMIT_NAMES = Object.keys(LIMITS) as (keyof typeof LIMITS)[];

/** Null: the default. */
export type ParsedTenantLimits = Readonly<Record<keyof typeof LIMITS, number | null>>;

const NO_LIMITS: ParsedTenantLimits = {
  maxQueued: null,
  maxInflight: null,
  maxSchedules: null,
  maxSessions: null,
  maxStreams: null,
  maxAgents: null,
  maxStoredBytes: null,
};

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
  const { name, limits } = parseTenantChanges(input);
  if (name === undefined) {
    throw invalidField("name", '`name` is missing: say what the tenant is called, like {"name": "Acme"}');
  }
  return { name, limits: { ...NO_LIMITS, ...limits } };
}

/** Parses the changes of a tenant. Throws `invalid_field`. */
export function parseTenantChanges(input: unknown): ParsedTenantChanges {
  if (!isObject(input)) {
    throw invalidField("tenant", `a tenant must be an object, like {"name": "Acme"}, not ${quoted(input)}`);
  }
  checkKnown(input, ["name", "limits"]);
  const name = parseName(input);
  const limits = parseLimits(input);
  return { ...(name === undefined ? {} : { name }), ...(limits === undefined ? {} : { limits }) };
}

function parseName(fields: Fields): string | undefined {
  const name = optionalText(fields, "name")?.trim();
  if (name === undefined) return undefined;
  if (name !== "" && name.length <= NAME_LENGTH_MAX && !/\p{Cc}/u.test(name) && name.isWellFormed())
    return name;
  throw invalidField(
    "name",
    `\`name\` must be 1 to ${NAME_LENGTH_MAX} characters on one line, not ${quoted(fields["name"])}`,
  );
}

function parseLimits(fields: Fields): Partial<ParsedTenantLimits> | undefined {
  // Resets all limits.
  if (fields["limits"] === null) return NO_LIMITS;
  const limits = optionalObject(fields, "limits");
  if (limits === undefined) return undefined;
  checkKnown(limits, LIMIT_NAMES, "limits.");
  const parsed = LIMIT_NAMES.map((name) => [name, parseLimit(limits, name)] as const);
  return Object.fromEntries(parsed.filter(([, limit]) => limit !== undefined));
}

function parseLimit(limits: Fields, name: keyof typeof LIMITS): number | null | undefined {
  return limits[name] === null ? null : optionalNumber(limits, name, LIMITS[name], "limits.");
}
