import type { Role } from "./role.ts";

/** What a server can do beyond tasks, so that a program that shows it knows what to offer. */
export const FEATURES = [
  "sessions",
  "schedules",
  "lanes",
  "agents",
  "webhooks",
  "tenants",
  "keys",
  "audit",
  "doctor",
] as const;

export type Feature = (typeof FEATURES)[number];

/** Who is asking, and whom they ask. */
export interface Me {
  readonly role: Role;
  /** Null: the server has no keys, and asks for none. */
  readonly keyId: string | null;
  readonly keyName: string | null;
  readonly tenantId: string;
  readonly tenantName: string;
  /** With the role `agent`: its agent. */
  readonly agentId?: string;
  /** Whether no other machine can reach the server. */
  readonly isLocal: boolean;
  readonly version: string;
  /** The node that answers. */
  readonly node: string;
  readonly features: readonly Feature[];
}
