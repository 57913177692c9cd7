import type { SchedulePreviewInput, Schedules } from "../interface/schedules.ts";
import type { SchedulePreview } from "../model/schedule.ts";
import type { CallOptions } from "./call-options.ts";
import type { Connection } from "./connection.ts";

/** Schedules over HTTP. */
export class HttpSchedules implements Schedules {
  readonly #connection: Connection;

  constructor(connection: Connection) {
    this.#connection = connection;
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
}
