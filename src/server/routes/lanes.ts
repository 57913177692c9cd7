import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { clearLane, listLanes, putLane } from "../../api/lanes.ts";
import type { LaneInput } from "../../interface/lanes.ts";
import type { RouteParts } from "../routes.ts";

/** Lanes: how much of each runs at once, and what waits in it. */
export const laneRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { rota }) => {
  app.get("/lanes", { schema: listLanes }, async () => rota.lanes.list());

  app.put("/lanes/:name", { schema: putLane }, async ({ params, body }) =>
    rota.lanes.put(params.name, body as LaneInput),
  );

  app.post("/lanes/:name/clear", { schema: clearLane }, async ({ params }) => rota.lanes.clear(params.name));
};
