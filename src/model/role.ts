import { DEFAULT_TENANT } from "./task.ts";

/**
 * What a key allows. `viewer` reads; `agent` hands in, reads and writes writs for its own agent; `operator` does all there is
 * to do with the work of its tenant; `tenant-admin` does that and manages the keys of its tenant, but no `admin` keys, and reads
 * its limits; `admin`, a role of the default tenant only, manages all tenants and keys, the configuration and the audit log,
 * and sees the work of its own tenant only.
 */
export const ROLES = ["viewer", "agent", "operator", "tenant-admin", "admin"] as const;
export type Role = (typeof ROLES)[number];

/** The role that a stored key has: a node of an older version may have stored an `admin` key for another tenant. */
export function roleIn(tenant: string, stored: string): Role {
  return stored === "admin" && tenant !== DEFAULT_TENANT ? "tenant-admin" : (stored as Role);
}

/** Who is asking. */
export interface Caller {
  readonly tenant: string;
  readonly role: Role;
  /** The only agent it may speak for; null: any. */
  readonly agent: string | null;
  /** Null: nobody was asked for a key. */
  readonly keyId: string | null;
  /** What the key is called; null: nobody was asked for a key. */
  readonly keyName: string | null;
}
