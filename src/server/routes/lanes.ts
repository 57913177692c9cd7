import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { clearLane, listLanes, putLane } from "../../api/lanes.ts";
import type { LaneInput } from "../../interface/lanes.ts";
import type { RouteParts } from "../route-parts.ts";
import { requiredRole } from "./required-role.ts";

/** Lanes: how much of each runs at once, and what waits in it. */
export const laneRoutes: FastifyPluginAsyncZod<RouteParts> = async (app) => {
  app.get("/lanes", requiredRole("read", listLanes), async ({ rota }) => rota.lanes.list());

  app.put("/lanes/:name", requiredRole("administer", putLane), async ({ rota, params, body }) =>
    rota.lanes.put(params.name, body as LaneInput),
  );

  app.post("/lanes/:name/clear", requiredRole("operate", clearLane), async ({ rota, params }) =>
    rota.lanes.clear(params.name),
  );
};
