import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { getWaiting } from "../../api/waiting.ts";
import type { RouteParts } from "../routes.ts";
import { may } from "./may.ts";

/** Counts of waiting tasks by reason. */
export const waitingRoutes: FastifyPluginAsyncZod<RouteParts> = async (app) => {
  app.get("/waiting", may("read", getWaiting), async ({ rota }) => rota.waiting());
};
