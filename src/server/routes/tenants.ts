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
import type { RouteParts } from "../routes.ts";
import { may } from "./may.ts";

/** Whose work it is. */
export const tenantRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { installation: { tenants } }) => {
  app.post("/tenants", may("administer", createTenant), async ({ body }, reply) => {
    reply.code(201);
    return tenants.create(body as TenantInput);
  });

  app.get("/tenants", may("administer", listTenants), async () => tenants.list());

  app.get("/tenants/:id", may("manage", getTenant), async ({ visitor, params }) => {
    checkOwnTenant(visitor.caller, params.id);
    return tenants.get(params.id);
  });

  app.patch("/tenants/:id", may("administer", updateTenant), async ({ params, body }) =>
    tenants.update(params.id, body as TenantChanges),
  );

  app.post("/tenants/:id/disable", may("administer", disableTenant), async ({ params }) =>
    tenants.disable(params.id),
  );

  app.post("/tenants/:id/enable", may("administer", enableTenant), async ({ params }) =>
    tenants.enable(params.id),
  );

  app.delete("/tenants/:id", may("administer", deleteTenant), async ({ params }) =>
    tenants.delete(params.id),
  );

  app.post("/tenants/:id/webhook-secret", may("manage", rotateWebhookSecret), async ({ visitor, params }) => {
    checkOwnTenant(visitor.caller, params.id);
    return tenants.rotateWebhookSecret(params.id);
  });
};
