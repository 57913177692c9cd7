import { z } from "zod";
import { PREVIEW_COUNT } from "../model/schedule.ts";
import { errorAnswersWith } from "./error.ts";
import { time } from "./time.ts";

const tz = z.string().describe("An IANA time zone, like Europe/Berlin.");

const schedule = z
  .union([
    z.string().describe("A phrase or a cron expression."),
    z.strictObject({
      kind: z.literal("at"),
      atMs: z.int().min(0).describe("Milliseconds since 1970."),
      tz: tz.exactOptional(),
    }),
    z.strictObject({
      kind: z.literal("every"),
      everyMs: z.int().min(1_000).describe("Milliseconds."),
      tz: tz.exactOptional(),
    }),
    z.strictObject({
      kind: z.literal("cron"),
      expr: z.string().describe("Five or six fields, or a nickname like `@daily`."),
      tz: tz.exactOptional(),
    }),
  ])
  .meta({
    id: "Schedule",
    description: "When something is to be done; docs/schedules.md lists the phrases.",
    examples: [
      "every Mon at 09:00",
      "in 30 minutes",
      { kind: "every", everyMs: 1_800_000 },
      { kind: "cron", expr: "0 9 * * 1-5", tz: "Europe/Rome" },
    ],
  });

const previewInput = z
  .strictObject({
    schedule,
    tz: tz.exactOptional().describe("An IANA time zone, like Europe/Berlin; left out: the server's."),
    from: time
      .exactOptional()
      .describe("As if it was made then, RFC 3339, in the years 1970 to 2999; left out: now."),
    count: z
      .int()
      .min(PREVIEW_COUNT.min)
      .max(PREVIEW_COUNT.max)
      .exactOptional()
      .describe(`How many moments to list; left out: ${PREVIEW_COUNT.default}.`),
  })
  .meta({
    id: "PreviewRequest",
    description: "A schedule to look at.",
    examples: [
      { schedule: "every day at 02:30", tz: "Europe/Berlin", from: "2030-03-30T00:00:00Z", count: 3 },
      { schedule: "in 30 minutes" },
      { schedule: { kind: "every", everyMs: 1_800_000 } },
      { schedule: { kind: "cron", expr: "0 9 * * 1-5", tz: "Europe/Rome" }, count: 10 },
    ],
  });

export const schedulePreview = z
  .strictObject({
    normalized: z.string().describe("What was understood, as a phrase that means the same."),
    kind: z.enum(["once", "recurring"]),
    next: z
      .array(z.string())
      .readonly()
      .describe("The next moments, within 100 years, as ISO 8601 with the zone's offset."),
    notes: z
      .array(z.string())
      .readonly()
      .describe("A sentence for each clock change that one of them has to do with."),
  })
  .meta({
    id: "SchedulePreview",
    description: "What would come of a schedule.",
    examples: [
      {
        normalized: "every day at 02:30",
        kind: "recurring",
        next: ["2030-03-30T02:30:00+01:00", "2030-03-31T03:00:00+02:00", "2030-04-01T02:30:00+02:00"],
        notes: [
          "In Europe/Berlin the clock skips from 2030-03-31 02:00 to 2030-03-31 03:00: what is due in between is due at the end of the gap, once.",
        ],
      },
    ],
  });

// ------------------------------------------------------------------------------------------------------ operations

const errorAnswers = errorAnswersWith({
  invalid_field:
    '`tz` must be an IANA time zone like Europe/Berlin or UTC, not "Berlin": did you mean Europe/Berlin?',
});

export const previewSchedule = {
  operationId: "previewSchedule",
  tags: ["schedules"],
  summary: "Preview a schedule",
  description:
    "What a schedule means and when it would be due. Stores nothing. For what is not understood, `details.accepted` lists the forms that are.",
  body: previewInput,
  response: { 200: schedulePreview, ...errorAnswers() },
};
