import type {
  CreatedSchedule,
  NewScheduleInput,
  RunAnswer,
  RunFilter,
  RunMode,
  RunPage,
  ScheduleChanges,
  ScheduleDryRun,
  ScheduledTask,
  ScheduleFilter,
  ScheduleList,
  SchedulePreviewInput,
  Schedules,
  SchedulesStatus,
  UpcomingFilter,
  UpcomingMoments,
} from "../interface/schedules.ts";
import { RotaError } from "../model/errors.ts";
import type { SchedulePreview } from "../model/schedule.ts";
import { isSerialId } from "../model/serial-id.ts";
import type { CallOptions } from "./call-options.ts";
import type { Connection } from "./connection.ts";
import { timeText } from "./time-text.ts";

/** Schedules over HTTP. */
export class HttpSchedules implements Schedules {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  create(input: NewScheduleInput, { signal }: CallOptions = {}): Promise<CreatedSchedule> {
    return this.#connection.ask({ method: "POST", path: "/v1/schedules", body: input ?? null, signal });
  }

  dryRun(input: NewScheduleInput, { signal }: CallOptions = {}): Promise<ScheduleDryRun> {
    return this.#connection.ask({
      method: "POST",
      path: "/v1/schedules",
      query: { dryRun: true },
      body: input ?? null,
      signal,
      // It stores nothing.
      repeatable: true,
    });
  }

  preview(input: SchedulePreviewInput, { signal }: CallOptions = {}): Promise<SchedulePreview> {
    return this.#connection.ask({
      method: "POST",
      path: "/v1/schedules/preview",
      body: input ?? null,
      signal,
      // It stores nothing.
      repeatable: true,
    });
  }

  list(filter: ScheduleFilter = {}, { signal }: CallOptions = {}): Promise<ScheduleList> {
    return this.#connection.ask({ path: "/v1/schedules", query: { ...filter }, signal });
  }

  async get(id: number, { signal }: CallOptions = {}): Promise<ScheduledTask> {
    const answer = await this.#connection.ask<ShownSchedule>({ path: schedulePath(id), signal });
    return answer.scheduled_task;
  }

  async update(id: number, changes: ScheduleChanges, { signal }: CallOptions = {}): Promise<ScheduledTask> {
    const answer = await this.#connection.ask<ShownSchedule>({
      method: "PATCH",
      path: schedulePath(id),
      body: changes ?? null,
      signal,
      // Idempotent, except that a changed time counts from the last request.
      repeatable: true,
    });
    return answer.scheduled_task;
  }

  async delete(id: number, { signal }: CallOptions = {}): Promise<{ readonly deleted: true }> {
    return this.#connection.ask({
      method: "DELETE",
      path: schedulePath(id),
      signal,
      repeatable: true,
      whenDone: ({ code }) => (code === "not_found" ? { deleted: true } : undefined),
    });
  }

  async run(id: number, options: { mode?: RunMode } = {}, { signal }: CallOptions = {}): Promise<RunAnswer> {
    return this.#connection.ask({
      method: "POST",
      path: `${schedulePath(id)}/run`,
      body: options,
      signal,
    });
  }

  async runs(id: number, filter: RunFilter = {}, { signal }: CallOptions = {}): Promise<RunPage> {
    return this.#connection.ask({ path: `${schedulePath(id)}/runs`, query: { ...filter }, signal });
  }

  status({ signal }: CallOptions = {}): Promise<SchedulesStatus> {
    return this.#connection.ask({ path: "/v1/schedules/status", signal });
  }

  upcoming(filter: UpcomingFilter = {}, { signal }: CallOptions = {}): Promise<UpcomingMoments> {
    const { from, to, limit, per_schedule } = filter;
    const query = { from: timeText(from), to: timeText(to), limit, per_schedule };
    return this.#connection.ask({ path: "/v1/schedules/upcoming", query, signal });
  }
}

interface ShownSchedule {
  readonly scheduled_task: ScheduledTask;
}

/** A text that cannot be an id might lead to another route, so no request is sent. */
function schedulePath(id: number): string {
  if (!isSerialId(id)) throw new RotaError("not_found", "schedule not found");
  return `/v1/schedules/${id}`;
}
