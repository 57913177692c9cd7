import type { Role } from "../../../src/client/index.ts";

/** What a role may do, as docs/keys.md has it. Buttons that a role may not use are absent. */
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
