import type { Bounds } from "./bounds.ts";
import { DEFAULT_TENANT } from "./tenant.ts";

/**
 * What a key allows. `viewer` reads. `agent` submits, cancels and retries tasks, reads and uses writs, all for its own agent; if
 * that agent has `writs`, it also makes and changes its schedules. `worker` pulls tasks of its agents and reports on them, and
 * reads nothing else. `operator` does everything with the work of its tenant. `tenant-admin` also manages the keys of its tenant,
 * but no `admin` keys, and reads its limits. `admin`, a role of the default tenant only, manages all tenants and keys, the
 * configuration and the audit log, and sees only the work of its own tenant.
 */
export const ROLES = ["viewer", "agent", "worker", "operator", "tenant-admin", "admin"] as const;
export type Role = (typeof ROLES)[number];

/** The role that a stored key has: a node of an older version may have stored an `admin` key for another tenant. */
export function roleIn(tenant: string, stored: string): Role {
  return stored === "admin" && tenant !== DEFAULT_TENANT ? "tenant-admin" : (stored as Role);
}

/** The caller of a request. */
export interface Caller {
  readonly tenant: string;
  readonly role: Role;
  /** The only agent that it may act for; null: any. */
  readonly agent: string | null;
  /** With the role `worker`: the agents whose tasks it may run. Left out: another role. */
  readonly workerAgents?: readonly string[];
  /** What it may make; left out: its key has no bounds of its own. */
  readonly bounds?: Bounds;
  /** Null: no key was required. */
  readonly keyId: string | null;
  /** The name of the key; null: no key was required. */
  readonly keyName: string | null;
}
