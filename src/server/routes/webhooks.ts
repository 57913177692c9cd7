import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { getDelivery, listDeliveries, resendDelivery } from "../../api/webhooks.ts";
import type { DeliveryFilter } from "../../interface/webhooks.ts";
import type { RouteParts } from "../route-parts.ts";
import { withNumbers } from "./query-values.ts";
import { requiredRole } from "./required-role.ts";

/** Webhook deliveries and their outcomes. */
export const webhookRoutes: FastifyPluginAsyncZod<RouteParts> = async (app) => {
  app.get("/webhooks/deliveries", requiredRole("read", listDeliveries), async ({ rota, query }) =>
    rota.webhooks.deliveries(withNumbers(query, "limit") as DeliveryFilter),
  );

  app.get("/webhooks/deliveries/:id", requiredRole("read", getDelivery), async ({ rota, params }) =>
    rota.webhooks.get(params.id),
  );

  app.post(
    "/webhooks/deliveries/:id/resend",
    requiredRole("operate", resendDelivery),
    async ({ rota, params }, reply) => {
      reply.code(202);
      return rota.webhooks.resend(params.id);
    },
  );
};
