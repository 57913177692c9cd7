import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { getRun, listRuns } from "../../api/runs.ts";
import type { RunFilter } from "../../interface/schedules.ts";
import type { RouteParts } from "../route-parts.ts";
import { toSerialId, withNumbers } from "./query-values.ts";
import { requiredRole } from "./required-role.ts";

/** Runs: every due time and its outcome. */
export const runRoutes: FastifyPluginAsyncZod<RouteParts> = async (app) => {
  app.get("/runs", requiredRole("readOwn", listRuns), async ({ rota, query }) =>
    rota.runs.list(withNumbers(query, "since", "limit") as RunFilter),
  );

  app.get("/runs/:id", requiredRole("readOwn", getRun), async ({ rota, params }) => ({
    run: await rota.runs.get(toSerialId(params.id)),
  }));
};
