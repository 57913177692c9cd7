import type { FastifyPluginAsyncZod } from "fastify-type-provider-zod";
import {
  createSchedule,
  deleteSchedule,
  getSchedule,
  getSchedulesStatus,
  listRunsOfSchedule,
  listSchedules,
  listUpcoming,
  previewSchedule,
  runSchedule,
  updateSchedule,
} from "../../api/schedules.ts";
import type {
  NewScheduleInput,
  RunFilter,
  RunMode,
  ScheduleChanges,
  ScheduleFilter,
  SchedulePreviewInput,
  UpcomingFilter,
} from "../../interface/schedules.ts";
import { isObject } from "../../model/input/field-checks.ts";
import { UPCOMING_LIMIT, UPCOMING_LIMIT_DEFAULT } from "../../model/input/schedule-filters.ts";
import { PREVIEW_COUNT } from "../../model/schedule.ts";
import { skipAudit } from "../middleware/audit.ts";
import type { RouteParts } from "../route-parts.ts";
import { refuseKey } from "./idempotency-header.ts";
import { isDryRun, toSerialId, withNumbers } from "./query-values.ts";
import { requiredRole } from "./required-role.ts";

/** Schedules: create, read, change and run them, and read their runs. */
export const scheduleRoutes: FastifyPluginAsyncZod<RouteParts> = async (app, { largeJson }) => {
  app.post("/schedules", requiredRole("submit", createSchedule), async (request, reply) => {
    const { rota, headers, body, query } = request;
    refuseKey(headers["idempotency-key"], "schedules have none; leave it out");
    if (isDryRun(query)) {
      skipAudit(request);
      return rota.schedules.dryRun(body as NewScheduleInput);
    }
    reply.code(201);
    return rota.schedules.create(body as NewScheduleInput);
  });

  app.post(
    "/schedules/preview",
    requiredRole("explore", previewSchedule, dueTimesAsked),
    async ({ rota, body }) => rota.schedules.preview(body as SchedulePreviewInput),
  );

  app.get("/schedules", requiredRole("readOwn", listSchedules), async ({ rota, query }) =>
    rota.schedules.list(withNumbers(query, "limit") as ScheduleFilter),
  );

  app.get("/schedules/status", requiredRole("read", getSchedulesStatus), async ({ rota }) =>
    rota.schedules.status(),
  );

  app.get(
    "/schedules/upcoming",
    requiredRole("read", listUpcoming, dueTimesListed),
    async ({ rota, query }) =>
      rota.schedules.upcoming(withNumbers(query, "from", "to", "limit", "per_schedule") as UpcomingFilter),
  );

  app.get("/schedules/:id", requiredRole("readOwn", getSchedule), async (request) => ({
    scheduled_task: await request.rota.schedules.get(toSerialId(request.params.id), largeJson.paid(request)),
  }));

  app.patch("/schedules/:id", requiredRole("submit", updateSchedule), async (request) => {
    const { rota, params, body } = request;
    const changing = largeJson.paid(request, "bytesIn");
    const changes = body as ScheduleChanges;
    return { scheduled_task: await rota.schedules.update(toSerialId(params.id), changes, changing) };
  });

  app.delete("/schedules/:id", requiredRole("submit", deleteSchedule), async ({ rota, params }) =>
    rota.schedules.delete(toSerialId(params.id)),
  );

  app.post("/schedules/:id/run", requiredRole("submit", runSchedule), async (request) => {
    const { rota, params, body } = request;
    const running = largeJson.paid(request, "bytesIn");
    return rota.schedules.run(toSerialId(params.id), body as { mode?: RunMode }, running);
  });

  app.get(
    "/schedules/:id/runs",
    requiredRole("readOwn", listRunsOfSchedule),
    async ({ rota, params, query }) =>
      rota.schedules.runs(toSerialId(params.id), withNumbers(query, "since", "limit") as RunFilter),
  );
};

/** Due times that listing them counts as, besides those listed: it reads all schedules of the tenant. */
const SCHEDULES_READ = 200;

function dueTimesListed(_body: unknown, query: unknown): { dueTimes: number } {
  const limit = Number((query as { limit?: string }).limit ?? UPCOMING_LIMIT_DEFAULT);
  return { dueTimes: SCHEDULES_READ + (limit > 0 ? Math.min(limit, UPCOMING_LIMIT.max) : 0) };
}

/** A preview stores nothing, and is the one small request that computes much. */
function dueTimesAsked(body: unknown): { dueTimes: number } {
  const count = isObject(body) ? Number(body["count"] ?? PREVIEW_COUNT.default) : 0;
  return { dueTimes: count > 0 ? Math.min(count, PREVIEW_COUNT.max) : 0 };
}
