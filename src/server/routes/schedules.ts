import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import {
  createSchedule,
  deleteSchedule,
  getSchedule,
  getSchedulesStatus,
  listRunsOfSchedule,
  listSchedules,
  previewSchedule,
  runSchedule,
  updateSchedule,
} from "../../api/schedules.ts";
import type {
  NewScheduleInput,
  RunFilter,
  RunMode,
  ScheduleChanges,
  SchedulePreviewInput,
} from "../../interface/schedules.ts";
import type { ScheduleStatus } from "../../model/schedule.ts";
import type { RouteParts } from "../routes.ts";
import { refuseKey } from "./idempotency-header.ts";
import { toSerialId, withNumbers } from "./query-values.ts";

/** Schedules: make them, look at them and at what became of them, change them, run them. */
export const scheduleRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { rota }) => {
  app.post("/schedules", { schema: createSchedule }, async ({ headers, body }, reply) => {
    refuseKey(headers["idempotency-key"], "schedules have none; leave it out");
    reply.code(201);
    return rota.schedules.create(body as NewScheduleInput);
  });

  app.post("/schedules/preview", { schema: previewSchedule }, async ({ body }) =>
    rota.schedules.preview(body as SchedulePreviewInput),
  );

  app.get("/schedules", { schema: listSchedules }, async ({ query }) =>
    rota.schedules.list(query as { status?: ScheduleStatus }),
  );

  app.get("/schedules/status", { schema: getSchedulesStatus }, async () => rota.schedules.status());

  app.get("/schedules/:id", { schema: getSchedule }, async ({ params }) => ({
    scheduled_task: await rota.schedules.get(toSerialId(params.id)),
  }));

  app.patch("/schedules/:id", { schema: updateSchedule }, async ({ params, body }) => ({
    scheduled_task: await rota.schedules.update(toSerialId(params.id), body as ScheduleChanges),
  }));

  app.delete("/schedules/:id", { schema: deleteSchedule }, async ({ params }) =>
    rota.schedules.delete(toSerialId(params.id)),
  );

  app.post("/schedules/:id/run", { schema: runSchedule }, async ({ params, body }) =>
    rota.schedules.run(toSerialId(params.id), body as { mode?: RunMode }),
  );

  app.get("/schedules/:id/runs", { schema: listRunsOfSchedule }, async ({ params, query }) =>
    rota.schedules.runs(toSerialId(params.id), withNumbers(query, "since", "limit") as RunFilter),
  );
};
