import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { getDelivery, listDeliveries, resendDelivery } from "../../api/webhooks.ts";
import type { DeliveryFilter } from "../../interface/webhooks.ts";
import type { RouteParts } from "../routes.ts";
import { withNumbers } from "./query-values.ts";

/** What became of callbacks. */
export const webhookRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { rota }) => {
  app.get("/webhooks/deliveries", { schema: listDeliveries }, async ({ query }) =>
    rota.webhooks.deliveries(withNumbers(query, "limit") as DeliveryFilter),
  );

  app.get("/webhooks/deliveries/:id", { schema: getDelivery }, async ({ params }) =>
    rota.webhooks.get(params.id),
  );

  app.post("/webhooks/deliveries/:id/resend", { schema: resendDelivery }, async ({ params }, reply) => {
    reply.code(202);
    return rota.webhooks.resend(params.id);
  });
};
