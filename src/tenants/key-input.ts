import { AGENT_ID_FORM, toAgentId } from "../model/agent.ts";
import {
  checkKnown,
  type Fields,
  invalidField,
  isObject,
  optionalMoment,
  quoted,
  requiredText,
  withoutNulls,
} from "../model/input/field-checks.ts";
import { ROLES, type Role } from "../model/role.ts";
import { DEFAULT_TENANT } from "../model/tenant.ts";

const FIELDS = ["role", "name", "agentId", "expiresAt", "tenantId"];
const NAME_LENGTH_MAX = 200;

export interface ParsedKey {
  readonly role: Role;
  readonly name: string;
  readonly agent: string | null;
  readonly expiresAt: number | null;
  readonly tenant: string | undefined;
}

/** Parses the input of a new key. Throws `invalid_field`. */
export function parseKeyInput(input: unknown, { now }: { readonly now: number }): ParsedKey {
  if (!isObject(input)) {
    throw invalidField("role", 'a key is an object, like {"role": "operator", "name": "laptop"}');
  }
  checkKnown(input, FIELDS);
  const fields = withoutNulls(input);
  const role = parseRole(fields);
  const tenant = parseTenantId(fields);
  if (role === "admin") checkAdminTenant(tenant);
  return {
    role,
    name: parseName(fields),
    agent: parseAgent(fields, role),
    expiresAt: parseExpiry(fields, now),
    tenant,
  };
}

/** The tenant of the keys; undefined: the caller's own. */
export function parseKeyOwner(owner: unknown): string | undefined {
  const fields = isObject(owner) ? owner : {};
  checkKnown(fields, ["tenantId"]);
  return parseTenantId(fields);
}

function parseRole({ role }: Fields): Role {
  if ((ROLES as readonly unknown[]).includes(role)) return role as Role;
  throw invalidField(
    "role",
    `\`role\` must be one of ${ROLES.join(", ")}${role === undefined ? "" : `, not ${quoted(role)}`}`,
  );
}

function checkAdminTenant(tenant: string | undefined): void {
  if (tenant === undefined || tenant === DEFAULT_TENANT) return;
  throw invalidField(
    "role",
    `\`role\`: \`admin\` keys exist only in the tenant "${DEFAULT_TENANT}"; write "tenant-admin" for a key that manages another tenant, or leave out \`tenantId\``,
  );
}

function parseName(fields: Fields): string {
  const name = requiredText(fields, "name");
  // Names are also shown in terminals.
  if (name.length <= NAME_LENGTH_MAX && !/\p{Cc}/u.test(name)) return name;
  throw invalidField(
    "name",
    `\`name\` must be a text of at most ${NAME_LENGTH_MAX} characters without control characters, such as line breaks`,
  );
}

function parseAgent({ agentId }: Fields, role: Role): string | null {
  if (role === "agent") {
    const id = toAgentId(agentId);
    if (id !== null) return id;
    throw invalidField(
      "agentId",
      `\`agentId\` must name the agent that the key may act for: ${AGENT_ID_FORM}`,
    );
  }
  if (agentId === undefined) return null;
  throw invalidField("agentId", "`agentId` is for the role `agent` alone: leave it out, or choose that role");
}

function parseExpiry(fields: Fields, now: number): number | null {
  const expiresAt = optionalMoment(fields, "expiresAt");
  if (expiresAt === undefined) return null;
  if (expiresAt > now) return expiresAt;
  throw invalidField("expiresAt", "`expiresAt` is in the past: write a time to come, or leave it out");
}

function parseTenantId({ tenantId }: Fields): string | undefined {
  if (tenantId === undefined) return undefined;
  if (typeof tenantId === "string" && tenantId !== "" && !tenantId.includes("\0")) return tenantId;
  throw invalidField("tenantId", "`tenantId` must be the id of a tenant");
}
