import type { Role } from "../model/role.ts";

/** What a route lets whoever asks do, and which roles may. */
export const PERMISSIONS = {
  /** Tells nothing of anybody's work: no key is asked for. */
  open: ["viewer", "agent", "operator", "tenant-admin", "admin"],
  /** Tells nothing of anybody's work, but not to strangers. */
  known: ["viewer", "agent", "operator", "tenant-admin", "admin"],
  /** Reads work that belongs to one agent: the role `agent` sees its own. */
  readOwn: ["viewer", "agent", "operator", "tenant-admin", "admin"],
  /** Reads what is the tenant's as a whole. */
  read: ["viewer", "operator", "tenant-admin", "admin"],
  /** Hands in work for an agent: the role `agent` for its own. */
  submit: ["agent", "operator", "tenant-admin", "admin"],
  /** Changes the work of the tenant. */
  operate: ["operator", "tenant-admin", "admin"],
  /** Manages a tenant: the role `tenant-admin` its own, where the id of another is a 404 (`own-tenant.ts`). */
  manage: ["tenant-admin", "admin"],
  /** Looks after the installation. */
  administer: ["admin"],
} as const satisfies Readonly<Record<string, readonly Role[]>>;

export type Permission = keyof typeof PERMISSIONS;

export function isAllowed(role: Role, permission: Permission): boolean {
  return (PERMISSIONS[permission] as readonly Role[]).includes(role);
}
