import type { Permission } from "../../tenants/permissions.ts";

/** What a route is: what it lets whoever asks do, and what it looks like from outside. */
export function may<Schema>(
  access: Permission,
  schema: Schema,
): { readonly schema: Schema; readonly config: { readonly access: Permission } } {
  return { schema, config: { access } };
}
