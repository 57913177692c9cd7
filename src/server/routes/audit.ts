import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { listAudit } from "../../api/audit.ts";
import type { AuditFilter } from "../../interface/audit.ts";
import type { RouteParts } from "../route-parts.ts";
import { withNumbers } from "./query-values.ts";
import { requiredRole } from "./required-role.ts";

/** The audit log of a tenant: which key did what. */
export const auditRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { installation: { audit } }) => {
  app.get("/audit", requiredRole("administer", listAudit), async ({ callerContext, query }) => {
    const filter = withNumbers(query, "since", "limit") as AuditFilter;
    return audit.list({ tenantId: callerContext.caller.tenant, ...filter });
  });
};
