import type { Permission } from "../../tenants/permissions.ts";
import type { DeclaredWork } from "../middleware/charge-requests.ts";

/**
 * The options of a route: the permission that it needs, and its schema. `declares`: how much work the body or
 * the query of a request asks for, where that can be much.
 */
export function requiredRole<Schema>(
  access: Permission,
  schema: Schema,
  declares?: (body: unknown, query: unknown) => DeclaredWork,
): { readonly schema: Schema; readonly config: RouteConfig } {
  return { schema, config: { access, paged: isPaged(schema), ...(declares && { declares }) } };
}

interface RouteConfig {
  readonly access: Permission;
  readonly paged: boolean;
  readonly declares?: (body: unknown, query: unknown) => DeclaredWork;
}

/** Whether a request says how many rows it wants. */
function isPaged(schema: unknown): boolean {
  const { querystring } = schema as { querystring?: { shape?: Record<string, unknown> } };
  return querystring?.shape?.["limit"] !== undefined;
}
