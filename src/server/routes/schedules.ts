import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import { previewSchedule } from "../../api/schedules.ts";
import type { SchedulePreviewInput } from "../../interface/schedules.ts";
import type { RouteParts } from "../routes.ts";

/** Schedules: when they would be due. */
export const scheduleRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { rota }) => {
  app.post("/schedules/preview", { schema: previewSchedule }, async ({ body }) =>
    rota.schedules.preview(body as SchedulePreviewInput),
  );
};
