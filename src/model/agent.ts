import { invalidField, quoted } from "./input/field-checks.ts";

/** The agent that always exists. */
export const DEFAULT_AGENT = "index";
/** The limit of waiting tasks of an agent without a limit. */
export const NO_QUEUE_LIMIT = Number.MAX_SAFE_INTEGER;

/** What identifies an agent: two tenants may have agents with the same id. */
export interface AgentName {
  readonly tenant: string;
  readonly agent: string;
}

/**
 * The key of an agent in maps and sets. Either name may contain any character; the length of the first says where it ends. The
 * keys of a tenant's agents all start with `agentKey({ tenant, agent: "" })`.
 */
export function agentKey({ tenant, agent }: AgentName): string {
  return `${tenant.length} ${tenant} ${agent}`;
}

/** The agent that has this key. */
export function agentOfKey(key: string): AgentName {
  const tenantAt = key.indexOf(" ") + 1;
  const tenantEnd = tenantAt + Number(key.slice(0, tenantAt - 1));
  return { tenant: key.slice(tenantAt, tenantEnd), agent: key.slice(tenantEnd + 1) };
}

// In the path of a URL `.` and `..` mean folders, however they are encoded. A lone surrogate has no encoding at all. Control and
// bidi characters would let one agent look like another.
const AGENT_ID = /^(?!\.{1,2}$)(?!\s)[^\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]{1,128}(?<!\s)$/u;
/** The form of an agent id, as the rest of "must be …". */
export const AGENT_ID_FORM =
  "1 to 128 characters of any script, without control or bidi characters and without spaces at its ends, but not . or .. alone";

/** The id as it is stored, in Unicode's NFC, so that ids that look the same are the same. Null: it is no valid id. */
export function toAgentId(given: unknown): string | null {
  if (typeof given !== "string" || given.length > GIVEN_LENGTH_MAX) return null;
  const id = given.normalize("NFC");
  return AGENT_ID.test(id) ? id : null;
}

/** The same for a field. Throws `invalid_field`. */
export function checkAgentId(given: unknown, field = "agentId"): string {
  const id = toAgentId(given);
  if (id !== null) return id;
  throw invalidField(field, `\`${field}\` must be ${AGENT_ID_FORM}, not ${quoted(given)}`);
}

/** Before normalization: 128 characters are at most 256 code units, and few are written with more than four of them. */
const GIVEN_LENGTH_MAX = 1_024;
