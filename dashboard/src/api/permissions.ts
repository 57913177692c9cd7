import type { Role } from "../../../src/client/index.ts";

/** The permissions of each role, as in docs/keys.md. The dashboard hides buttons that a role may not use. */
const ALLOWED = {
  readOwn: ["viewer", "agent", "operator", "tenant-admin", "admin"],
  read: ["viewer", "operator", "tenant-admin", "admin"],
  submit: ["agent", "operator", "tenant-admin", "admin"],
  operate: ["operator", "tenant-admin", "admin"],
  manage: ["tenant-admin", "admin"],
  administer: ["admin"],
} as const satisfies Readonly<Record<string, readonly Role[]>>;

export type Permission = keyof typeof ALLOWED;

export function isAllowed(role: Role, permission: Permission): boolean {
  return (ALLOWED[permission] as readonly Role[]).includes(role);
}
