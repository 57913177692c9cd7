import type { Role } from "../model/role.ts";

/** What a route lets whoever asks do, and which roles may. */
export const PERMISSIONS = {
  /** Tells nothing of anybody's work: no key is asked for. */
  open: ["viewer", "agent", "operator", "admin"],
  /** Tells nothing of anybody's work, but not to strangers. */
  known: ["viewer", "agent", "operator", "admin"],
  /** Reads work that belongs to one agent: the role `agent` sees its own. */
  readOwn: ["viewer", "agent", "operator", "admin"],
  /** Reads what is the tenant's as a whole. */
  read: ["viewer", "operator", "admin"],
  /** Hands in work for an agent: the role `agent` for its own. */
  submit: ["agent", "operator", "admin"],
  /** Changes the work of the tenant. */
  operate: ["operator", "admin"],
  /** Looks after the installation. */
  administer: ["admin"],
} as const satisfies Readonly<Record<string, readonly Role[]>>;

export type Permission = keyof typeof PERMISSIONS;

export function isAllowed(role: Role, permission: Permission): boolean {
  return (PERMISSIONS[permission] as readonly Role[]).includes(role);
}
