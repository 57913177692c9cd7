import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { getMe } from "../../api/me.ts";
import { FEATURES, type Me } from "../../model/me.ts";
import { VERSION } from "../../version.ts";
import type { RouteParts } from "../route-parts.ts";
import { requiredRole } from "./required-role.ts";

/** The caller, for programs that offer only what its role may do. */
export const meRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { installation, isLocal }) => {
  app.get("/me", requiredRole("known", getMe), async ({ callerContext }): Promise<Me> => {
    const { role, caller } = callerContext;
    const { keyId, keyName, tenant, agent } = caller;
    return {
      role,
      keyId,
      keyName,
      tenantId: tenant,
      tenantName: (await installation.tenants.get(tenant)).name,
      ...(agent === null ? {} : { agentId: agent }),
      isLocal,
      version: VERSION,
      node: installation.node,
      features: FEATURES,
    };
  });
};
