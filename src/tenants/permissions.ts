import type { Role } from "../model/role.ts";

/** What a route allows, and the roles that may call it. */
export const PERMISSIONS = {
  /** Shows no data of a tenant, and needs no key. */
  open: ["viewer", "agent", "worker", "operator", "tenant-admin", "admin"],
  /** Shows no data of a tenant, and needs any valid key. */
  known: ["viewer", "agent", "worker", "operator", "tenant-admin", "admin"],
  /** Describes the API or computes, without data of a tenant. Workers need neither: their keys read nothing. */
  explore: ["viewer", "agent", "operator", "tenant-admin", "admin"],
  /** Reads work that belongs to one agent: the role `agent` sees its own. */
  readOwn: ["viewer", "agent", "operator", "tenant-admin", "admin"],
  /** Reads data of the whole tenant. */
  read: ["viewer", "operator", "tenant-admin", "admin"],
  /** Submits, cancels, retries and schedules work of an agent: the role `agent` that of its own. */
  submit: ["agent", "operator", "tenant-admin", "admin"],
  /** Pulls tasks and reports on them: the role `worker` those of its agents. */
  work: ["worker", "operator", "tenant-admin", "admin"],
  /** Changes the work of the tenant. */
  operate: ["operator", "tenant-admin", "admin"],
  /** Manages a tenant: the role `tenant-admin` its own, where the id of another is a 404 (`own-tenant.ts`). */
  manage: ["tenant-admin", "admin"],
  /** Manages the installation. */
  administer: ["admin"],
} as const satisfies Readonly<Record<string, readonly Role[]>>;

export type Permission = keyof typeof PERMISSIONS;

export function isAllowed(role: Role, permission: Permission): boolean {
  return (PERMISSIONS[permission] as readonly Role[]).includes(role);
}
