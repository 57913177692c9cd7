import type { Role } from "./role.ts";

/** Features of a server beyond tasks, so that a user interface knows what to offer. */
export const FEATURES = [
  "sessions",
  "schedules",
  "lanes",
  "agents",
  "webhooks",
  "mcp",
  "tenants",
  "keys",
  "audit",
  "doctor",
] as const;

export type Feature = (typeof FEATURES)[number];

/** The caller, and the server that responds. */
export interface Me {
  readonly role: Role;
  /** Null: the server has no keys, and requires none. */
  readonly keyId: string | null;
  readonly keyName: string | null;
  readonly tenantId: string;
  readonly tenantName: string;
  /** With the role `agent`: its agent. */
  readonly agentId?: string;
  /** Whether no other machine can reach the server. */
  readonly isLocal: boolean;
  readonly version: string;
  /** The node that responds. */
  readonly node: string;
  readonly features: readonly Feature[];
}
