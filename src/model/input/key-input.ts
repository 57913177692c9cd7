import { AGENT_ID_FORM } from "../agent.ts";
import type { Bounds } from "../bounds.ts";
import { RotaError } from "../errors.ts";
import { ROLES, type Role } from "../role.ts";
import { DEFAULT_TENANT } from "../tenant.ts";
import { bounds } from "./bounds-schema.ts";
import { checkFilledText, invalidField, isObject } from "./field-checks.ts";
import { agentId, choice, textLike, time } from "./kinds.ts";
import { readFields } from "./read-fields.ts";
import { type FilterSchema, type Kind, optional, type ReadOf, required, type Schema } from "./schema.ts";
import { agentNames } from "./worker-schema.ts";

const NAME_LENGTH_MAX = 200;

function tenantId(): Kind<string> {
  return textLike((id) => id !== "" && !id.includes("\0"), "the id of a tenant");
}

/** The input of a key. */
export const KEY = {
  name: "NewKey",
  noun: "key",
  description: "The role of a key, and who uses it.",
  fields: {
    role: required(choice(ROLES), {
      description:
        "`viewer` reads; `agent` submits and reads the work of its agent; `worker` pulls the tasks of its agents and reads nothing else; `operator` reads and changes all work of the tenant; `tenant-admin` also manages the keys and the webhook secret of its tenant; `admin`, only in the tenant `default`, manages the installation.",
      flag: "--role <role>",
      missing: `must be one of ${ROLES.join(", ")}`,
    }),
    name: required(keyName(), {
      description: "The program or person that uses it.",
      flag: "--name <name>",
    }),
    agentId: optional(agentId(), {
      description: "With the role `agent`, and only there: its agent.",
      flag: "--agent <id>",
    }),
    agents: optional(agentNames({ star: null }), {
      description: "With the role `worker`, and only there: the agents whose tasks it may run.",
      flag: "--agents <ids>",
    }),
    bounds: optional(bounds(), {
      description: "What callers with this key may make.",
      default: "those of its agent, else `bounds` of the configuration",
      flag: "--bounds <json>",
    }),
    expiresAt: optional(time(), {
      description: "From when on it is refused.",
      default: "it does not expire",
      flag: "--expires <time>",
    }),
    tenantId: optional(tenantId(), {
      description: "Its tenant.",
      default: "the tenant of the caller",
      flag: "--tenant <id>",
    }),
  },
  examples: [
    { role: "operator", name: "laptop" },
    { role: "worker", name: "gpu machine", agents: ["py"] },
    { role: "agent", name: "crawler", agentId: "crawler", expiresAt: "2030-01-31T09:00:00Z" },
  ],
} as const satisfies Schema;

/** The tenant of the keys. */
export const KEY_OWNER = {
  noun: "filter",
  refusesNull: true,
  fields: {
    tenantId: optional(tenantId(), {
      description: "The tenant of the keys.",
      default: "the tenant of the caller",
    }),
  },
} as const satisfies FilterSchema;

type Read = ReadOf<typeof KEY.fields>;

export interface ParsedKey {
  readonly role: Role;
  readonly name: string;
  readonly agent: string | null;
  readonly agents: readonly string[] | null;
  readonly bounds: Bounds | null;
  readonly expiresAt: number | null;
  readonly tenant: string | undefined;
}

/** Parses the input of a new key. Throws `invalid_field`. */
export function parseKeyInput(input: unknown, { now }: { readonly now: number }): ParsedKey {
  if (!isObject(input)) {
    throw invalidField("role", 'a key is an object, like {"role": "operator", "name": "laptop"}');
  }
  const read = readFields(KEY, input);
  const { role, name, bounds: own = null, expiresAt = null, tenantId: tenant } = read;
  if (role === "admin") checkAdminTenant(tenant);
  if (expiresAt !== null && expiresAt <= now) {
    throw invalidField("expiresAt", "`expiresAt` is in the past: write a later time, or leave it out");
  }
  return { role, name, agent: agentOf(read), agents: workerAgentsOf(read), bounds: own, expiresAt, tenant };
}

/** The tenant of the keys; undefined: the caller's own. */
export function parseKeyOwner(owner: unknown): string | undefined {
  return readFields(KEY_OWNER, isObject(owner) ? owner : {}).tenantId;
}

function checkAdminTenant(tenant: string | undefined): void {
  if (tenant === undefined || tenant === DEFAULT_TENANT) return;
  throw invalidField(
    "role",
    `\`role\`: \`admin\` keys exist only in the tenant "${DEFAULT_TENANT}"; write "tenant-admin" for a key that manages another tenant, or leave out \`tenantId\``,
  );
}

function agentOf({ agentId: agent, role }: Read): string | null {
  if (role !== "agent" && agent !== undefined) {
    throw invalidField(
      "agentId",
      "`agentId` is for the role `agent` alone: leave it out, or choose that role",
    );
  }
  if (role !== "agent" || agent !== undefined) return agent ?? null;
  throw invalidField("agentId", `\`agentId\` must name the agent that the key may act for: ${AGENT_ID_FORM}`);
}

function workerAgentsOf({ agents, role }: Read): readonly string[] | null {
  if (role !== "worker" && agents !== undefined) {
    throw invalidField(
      "agents",
      "`agents` is for the role `worker` alone: leave it out, or choose that role",
    );
  }
  if (role !== "worker" || agents !== undefined) return agents ?? null;
  throw invalidField("agents", '`agents` must name the agents whose tasks the key may run, like ["py"]');
}

function keyName(): Kind<string> {
  return {
    shape: { type: "text" },
    read: (value, field) => {
      const name = checkFilledText(value, field);
      // Names are also shown in terminals.
      if (name.length <= NAME_LENGTH_MAX && !/\p{Cc}/u.test(name)) return name;
      throw invalidField(
        field,
        `\`${field}\` must be a text of at most ${NAME_LENGTH_MAX} characters without control characters, such as line breaks`,
      );
    },
  };
}

/** The error for a `tenantId` of which the caller can see no tenant. */
export function keyTenantNotFound(): RotaError {
  return new RotaError("not_found", "`tenantId`: tenant not found: write the id of an existing tenant", {
    details: { field: "tenantId" },
  });
}
