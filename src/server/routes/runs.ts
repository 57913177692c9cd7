import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { getRun, listRuns } from "../../api/runs.ts";
import type { RunFilter } from "../../interface/schedules.ts";
import type { RouteParts } from "../routes.ts";
import { toSerialId, withNumbers } from "./query-values.ts";

/** Every due moment and what became of it. */
export const runRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { rota }) => {
  app.get("/runs", { schema: listRuns }, async ({ query }) =>
    rota.runs.list(withNumbers(query, "since", "limit") as RunFilter),
  );

  app.get("/runs/:id", { schema: getRun }, async ({ params }) => ({
    run: await rota.runs.get(toSerialId(params.id)),
  }));
};
