import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import {
  createTenant,
  deleteTenant,
  disableTenant,
  enableTenant,
  getTenant,
  listTenants,
  rotateWebhookSecret,
  updateTenant,
} from "../../api/tenants.ts";
import type { TenantChanges, TenantInput } from "../../interface/tenants.ts";
import { checkOwnTenant } from "../own-tenant.ts";
import type { RouteParts } from "../route-parts.ts";
import { requiredRole } from "./required-role.ts";

/** Tenants: create, read, change and delete them. */
export const tenantRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { installation: { tenants } }) => {
  app.post("/tenants", requiredRole("administer", createTenant), async ({ body }, reply) => {
    reply.code(201);
    return tenants.create(body as TenantInput);
  });

  app.get("/tenants", requiredRole("administer", listTenants), async () => tenants.list());

  app.get("/tenants/:id", requiredRole("manage", getTenant), async ({ callerContext, params }) => {
    checkOwnTenant(callerContext.caller, params.id);
    return tenants.get(params.id);
  });

  app.patch("/tenants/:id", requiredRole("administer", updateTenant), async ({ params, body }) =>
    tenants.update(params.id, body as TenantChanges),
  );

  app.post("/tenants/:id/disable", requiredRole("administer", disableTenant), async ({ params }) =>
    tenants.disable(params.id),
  );

  app.post("/tenants/:id/enable", requiredRole("administer", enableTenant), async ({ params }) =>
    tenants.enable(params.id),
  );

  app.delete("/tenants/:id", requiredRole("administer", deleteTenant), async ({ params }) =>
    tenants.delete(params.id),
  );

  app.post(
    "/tenants/:id/webhook-secret",
    requiredRole("manage", rotateWebhookSecret),
    async ({ callerContext, params }) => {
      checkOwnTenant(callerContext.caller, params.id);
      return tenants.rotateWebhookSecret(params.id);
    },
  );
};
