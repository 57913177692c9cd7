/**
 * What a key allows. `viewer` reads; `agent` hands in, reads and writes writs for its own agent; `operator` does all there is
 * to do with the work of its tenant; `admin` looks after tenants, keys, the configuration and the audit log besides, and
 * sees the work of its own tenant only.
 */
export const ROLES = ["viewer", "agent", "operator", "admin"] as const;
export type Role = (typeof ROLES)[number];

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
