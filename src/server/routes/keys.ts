import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { createKey, deleteKey, listKeys } from "../../api/keys.ts";
import type { KeyInput } from "../../interface/keys.ts";
import { isObject } from "../../model/field-checks.ts";
import type { RouteParts } from "../routes.ts";
import { may } from "./may.ts";

/** Who may ask. What names no tenant is about that of whoever asks. */
export const keyRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { installation: { keys } }) => {
  app.post("/keys", may("administer", createKey), async ({ visitor, body }, reply) => {
    reply.code(201);
    const own = { tenantId: visitor.caller.tenant };
    return keys.create((isObject(body) ? { ...own, ...body } : body) as KeyInput);
  });

  app.get("/keys", may("administer", listKeys), async ({ visitor, query }) =>
    keys.list({ tenantId: visitor.caller.tenant, ...query }),
  );

  app.delete("/keys/:id", may("administer", deleteKey), async ({ visitor, params, query }) =>
    keys.delete(params.id, { tenantId: visitor.caller.tenant, ...query }),
  );
};
