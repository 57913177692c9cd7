import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { createKey, deleteKey, listKeys } from "../../api/keys.ts";
import type { KeyInput } from "../../interface/keys.ts";
import { isObject } from "../../model/input/field-checks.ts";
import { managedKeys } from "../own-tenant.ts";
import type { RouteParts } from "../route-parts.ts";
import { requiredRole } from "./required-role.ts";

/** API keys. Without `tenantId`, a request is about the tenant of the caller. */
export const keyRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { installation: { keys } }) => {
  app.post("/keys", requiredRole("manage", createKey), async ({ callerContext: { caller }, body }, reply) => {
    reply.code(201);
    const input = isObject(body) ? { ...body, tenantId: body["tenantId"] ?? caller.tenant } : body;
    return managedKeys(keys, caller).create(input as KeyInput);
  });

  app.get("/keys", requiredRole("manage", listKeys), async ({ callerContext: { caller }, query }) =>
    managedKeys(keys, caller).list({ tenantId: caller.tenant, ...query }),
  );

  app.delete(
    "/keys/:id",
    requiredRole("manage", deleteKey),
    async ({ callerContext: { caller }, params, query }) =>
      managedKeys(keys, caller).delete(params.id, { tenantId: caller.tenant, ...query }),
  );
};
