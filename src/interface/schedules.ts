import type { ScheduleInput, SchedulePreview } from "../model/schedule.ts";

/** Schedules: when something is to be done, once or again and again. */
export interface Schedules {
  /**
   * What a schedule means and when it would be due, without making one. Throws `invalid_field`; for what was not understood,
   * `details.accepted` lists what can be said instead.
   *
   * @example
   * const { next } = await rota.schedules.preview({ schedule: "every Mon at 09:00", tz: "Europe/Berlin" });
   */
  preview(input: SchedulePreviewInput): Promise<SchedulePreview>;
}

export interface SchedulePreviewInput {
  readonly schedule: ScheduleInput;
  /** An IANA zone like `Europe/Berlin`; left out: that of the server. */
  readonly tz?: string;
  /** As if it was made then, in the years 1970 to 2999; left out: now. RFC 3339 as a text. */
  readonly from?: string | Date;
  /** How many moments to list, 1 to 1000; left out: 5. */
  readonly count?: number;
}
