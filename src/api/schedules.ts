import { z } from "zod";
import { SCHEDULE_FILTER, UPCOMING_FILTER } from "../model/input/schedule-filters.ts";
import {
  PREVIEW,
  RETRY_FIELDS,
  RUN_REQUEST,
  SCHEDULE,
  SCHEDULE_CHANGES,
} from "../model/input/schedule-schema.ts";
import { RUN_STATUSES } from "../model/run.ts";
import { CATCH_UPS, OVERLAPS, SCHEDULE_STATUSES } from "../model/schedule.ts";
import { leftOfBounds } from "./bounds.ts";
import { errorAnswersWith } from "./error.ts";
import { optionalRequestSchema, presentFields, querySchema, requestSchema } from "./input-schema.ts";
import { scheduleMaker } from "./provenance.ts";
import { runPage, runQuery } from "./runs.ts";
import { dryRunQuery } from "./tasks.ts";
import { seconds } from "./time.ts";

const tz = z.string().describe("An IANA time zone, like Europe/Berlin.");

const previewInput = requestSchema(PREVIEW);

export const schedulePreview = z
  .strictObject({
    normalized: z.string().describe("How Rota understood the phrase, in canonical form."),
    kind: z.enum(["once", "recurring"]),
    next: z
      .array(z.string())
      .readonly()
      .describe("The next due times, within 100 years, as ISO 8601 with the zone's offset."),
    notes: z
      .array(z.string())
      .readonly()
      .describe("A sentence for each clock change that affects one of them."),
  })
  .meta({
    id: "SchedulePreview",
    description: "The due times of a schedule that is not stored.",
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

const SCHEDULED_EXAMPLE = {
  id: 17,
  name: "the week",
  agent_id: "research",
  conversation_id: null,
  session_key: null,
  message: "Sum up last week's merged pull requests.",
  schedule_phrase: "every monday at 9am",
  schedule_kind: "recurring",
  fire_at: 0,
  recur_json: '{"kind":"weeks","every":1,"on":["Mon"],"at":"09:00","tz":"Europe/Berlin"}',
  tz: "Europe/Berlin",
  next_fire_at: 1_778_482_800,
  status: "active",
  enabled: true,
  delete_after_run: false,
  retry: { max_retries: 3, base_delay_ms: 2_000, max_delay_ms: 30_000 },
  overlap: "skip",
  catch_up: "one",
  useful_for: null,
  timeout: null,
  created_at: 1_778_241_780,
  updated_at: 1_778_241_780,
  last_run_at: 0,
  last_run_id: 0,
  run_count: 0,
  last_status: null,
  last_error: null,
  consecutive_failures: 0,
  paused_reason: null,
};

const overlap = z.enum(OVERLAPS);
const catchUp = z.enum(CATCH_UPS);
const retry = z.strictObject(presentFields(RETRY_FIELDS));

const newSchedule = requestSchema(SCHEDULE);

const scheduleChanges = requestSchema(SCHEDULE_CHANGES);

const scheduledTask = z
  .strictObject({
    id: z.int(),
    name: z.string().nullable(),
    agent_id: z.string(),
    conversation_id: z.string().nullable(),
    session_key: z.string().nullable(),
    post_to_session: z
      .literal(true)
      .exactOptional()
      .describe("Only the answers of its runs are added to that session. Left out: its runs are part of it."),
    message: z.string().nullable().describe("Null: it has an `instruction` or a `payload`."),
    instruction: z.string().exactOptional(),
    payload: z.unknown().optional(),
    schedule_phrase: z.string().describe("As it was written, or its canonical form."),
    schedule_kind: z.enum(["once", "recurring"]),
    fire_at: seconds.describe("The due time of a one-time schedule; 0 for a recurring one."),
    recur_json: z.string().nullable().describe("The rule of a recurring schedule, as JSON."),
    tz: z.string(),
    next_fire_at: seconds.describe("The next due time; 0: there is none."),
    status: z
      .enum(SCHEDULE_STATUSES)
      .describe(
        "A one-time schedule ends as `completed` or `failed`. A recurring one is `completed` after `max_runs` or `until`.",
      ),
    enabled: z.boolean().describe("Whether it is active."),
    delete_after_run: z.boolean(),
    retry,
    overlap,
    catch_up: catchUp,
    useful_for: z.number().nullable().describe("Seconds."),
    timeout: z.int().nullable().describe("Milliseconds."),
    lane: z.string().exactOptional(),
    priority: z.int().exactOptional(),
    metadata: z.record(z.string(), z.unknown()).readonly().exactOptional(),
    callback_url: z.string().exactOptional(),
    max_runs: z.int().exactOptional(),
    until: seconds.exactOptional().describe("The last possible due time."),
    pause_after_failures: z.int().exactOptional(),
    created_by: scheduleMaker
      .exactOptional()
      .describe("Who made it. Left out: an older version of Rota stored it."),
    parent_task_id: z.string().exactOptional().describe("The task in whose attempt it was made."),
    root_task_id: z.string().exactOptional().describe("The first task of the tree of that task."),
    depth: z.int().exactOptional().describe("How many tasks are above it in that tree."),
    created_at: seconds,
    updated_at: seconds,
    last_run_at: seconds.describe("The last time it fired."),
    last_run_id: z.int().describe("The run that fired last; 0: none has."),
    run_count: z.int().describe("How often it has fired. Skipped and missed due times do not count."),
    last_status: z.enum(RUN_STATUSES).nullable().describe("The status of the run that ended last."),
    last_error: z.string().nullable(),
    consecutive_failures: z.int().describe("Failed runs in a row, since the last success or resume."),
    paused_reason: z.string().nullable().describe("Why it is paused, unless a caller paused it."),
  })
  .meta({
    id: "ScheduledTask",
    description: "A schedule. Times are seconds since 1970; 0 means never, and no id.",
    examples: [SCHEDULED_EXAMPLE],
  });

export const createdSchedule = z
  .strictObject({
    scheduled_task: scheduledTask,
    normalized: z.string().describe("How Rota understood the phrase, in canonical form."),
  })
  .meta({
    id: "CreatedSchedule",
    description: "The schedule is stored, and will fire at its due times.",
    examples: [{ scheduled_task: SCHEDULED_EXAMPLE, normalized: "every Mon at 09:00" }],
  });

const { id: _id, ...PLANNED_EXAMPLE } = SCHEDULED_EXAMPLE;
const { kind: _kind, ...previewed } = schedulePreview.shape;

export const scheduleDryRun = z
  .strictObject({
    dryRun: z.literal(true),
    scheduled_task: z
      .strictObject(scheduledTask.omit({ id: true }).shape)
      .describe("The schedule that would be stored."),
    ...previewed,
    left: leftOfBounds,
  })
  .meta({
    id: "ScheduleDryRun",
    description: "The request passed all checks that need no write. Nothing is stored.",
    examples: [
      {
        dryRun: true,
        scheduled_task: PLANNED_EXAMPLE,
        normalized: "every Mon at 09:00",
        next: ["2030-01-07T09:00:00+01:00"],
        notes: [],
      },
    ],
  });

export const shownSchedule = z.strictObject({ scheduled_task: scheduledTask }).meta({
  id: "ShownSchedule",
  description: "One schedule.",
  examples: [{ scheduled_task: SCHEDULED_EXAMPLE }],
});

export const scheduleList = z
  .strictObject({
    schedules: z
      .array(scheduledTask)
      .readonly()
      .describe(
        "Without `cursor`, the schedule that was changed last first; with `cursor`, by id, newest first.",
      ),
    count: z.int().describe("Of this page."),
    next_cursor: z.string().nullable().describe("Null on the last page."),
  })
  .meta({
    id: "ScheduleList",
    description: "A page of schedules.",
    examples: [{ schedules: [SCHEDULED_EXAMPLE], count: 1, next_cursor: null }],
  });

export const deletedSchedule = z.strictObject({ deleted: z.literal(true) }).meta({
  id: "DeletedSchedule",
  description: "The schedule and its runs are deleted.",
  examples: [{ deleted: true }],
});

/** An empty body means `force`. */
const runRequest = optionalRequestSchema(RUN_REQUEST);

export const runAnswer = z
  .strictObject({
    ok: z.literal(true),
    ran: z.boolean(),
    reason: z
      .enum(["not-due", "already-running", "too_many_waiting"])
      .exactOptional()
      .describe("Why it did not run."),
    run_id: z.int().exactOptional().describe("The run, if it ran."),
  })
  .meta({
    id: "RunAnswer",
    description: "Whether a run was started.",
    examples: [
      { ok: true, ran: true, run_id: 42 },
      { ok: true, ran: false, reason: "already-running" },
    ],
  });

export const schedulesStatus = z
  .strictObject({
    active: z.int(),
    paused: z.int(),
    running: z.int().describe("Runs in progress."),
    next_fire_at: seconds.describe("The next due time of all schedules; 0: there is none."),
  })
  .meta({
    id: "SchedulesStatus",
    description: "Counts of schedules and runs.",
    examples: [{ active: 3, paused: 1, running: 0, next_fire_at: 1_778_482_800 }],
  });

// ------------------------------------------------------------------------------------------------------ operations

const upcomingMoments = z
  .strictObject({
    moments: z
      .array(
        z.strictObject({
          schedule_id: z.int(),
          name: z.string().nullable(),
          agent: z.string(),
          at: seconds,
          zone: tz.describe("The time zone of the schedule."),
        }),
      )
      .readonly(),
    truncated: z.boolean().describe("Whether the range has more due times than `limit`."),
  })
  .meta({
    id: "UpcomingMoments",
    description: "The next due times.",
    examples: [
      {
        moments: [
          { schedule_id: 17, name: "the week", agent: "research", at: 1_778_482_800, zone: "Europe/Berlin" },
        ],
        truncated: false,
      },
    ],
  });

const tags = ["schedules"];
const errorAnswers = errorAnswersWith({
  invalid_field:
    '`tz` must be an IANA time zone like Europe/Berlin or UTC, not "Berlin": did you mean Europe/Berlin?',
  not_found: "schedule not found",
  conflict: "the due time of schedule 17 has passed: give it a new `schedule`, or run it now",
});
const params = z.strictObject({ id: z.string().describe("The `id`, a number.") });

export const createSchedule = {
  operationId: "createSchedule",
  tags,
  summary: "Create a schedule",
  description:
    "201 means that the schedule is on disk and will fire. If a phrase is not understood, `details.accepted` lists the accepted forms. An agent that is not listed is a 404. With `dryRun=true` the response is the schedule that would be stored, with its next five due times; this checks the bounds of the caller, but not whether the tenant may have another schedule.",
  querystring: dryRunQuery,
  body: newSchedule,
  response: {
    200: scheduleDryRun,
    201: createdSchedule,
    ...errorAnswersWith({ not_found: 'agent "reserch" not found: did you mean "research"?' })(
      "not_found",
      "draining",
      "scheduler_disabled",
      "storage_unavailable",
    ),
  },
};

export const listSchedules = {
  operationId: "listSchedules",
  tags,
  summary: "List schedules",
  description:
    "The first page has the schedules that were changed last. The following pages have all others by id, newest first, so that edits in between neither skip nor repeat a schedule.",
  querystring: querySchema(SCHEDULE_FILTER),
  response: { 200: scheduleList, ...errorAnswers("storage_unavailable") },
};

export const getSchedulesStatus = {
  operationId: "getSchedulesStatus",
  tags,
  summary: "Count schedules",
  description:
    "How many schedules are active and paused, how many of their runs have not ended, and the next due time.",
  response: { 200: schedulesStatus, ...errorAnswers("storage_unavailable") },
};

export const listUpcoming = {
  operationId: "listUpcoming",
  tags,
  summary: "List the next due times",
  description:
    "The due times of all active schedules within a range, earliest first. They are computed; nothing is stored.",
  querystring: querySchema(UPCOMING_FILTER),
  response: { 200: upcomingMoments, ...errorAnswers("storage_unavailable") },
};

export const getSchedule = {
  operationId: "getSchedule",
  tags,
  summary: "Get a schedule",
  description: "The schedule with its next due time, the number of its runs, and the status of its last run.",
  params,
  response: { 200: shownSchedule, ...errorAnswers("not_found", "storage_unavailable") },
};

export const updateSchedule = {
  operationId: "updateSchedule",
  tags,
  summary: "Change, pause or resume a schedule",
  description:
    "Fields that are left out stay. A new `schedule` counts from now, and reactivates a `completed` or `failed` schedule. 409 if you activate a one-time schedule whose due time has passed without a new `schedule`.",
  params,
  body: scheduleChanges,
  response: {
    200: shownSchedule,
    ...errorAnswers("not_found", "conflict", "draining", "scheduler_disabled", "storage_unavailable"),
  },
};

export const deleteSchedule = {
  operationId: "deleteSchedule",
  tags,
  summary: "Delete a schedule",
  description: "Deletes the schedule with its runs, and cancels runs that have not ended.",
  params,
  response: { 200: deletedSchedule, ...errorAnswers("not_found", "storage_unavailable") },
};

export const runSchedule = {
  operationId: "runSchedule",
  tags,
  summary: "Run a schedule now",
  description:
    "Runs a schedule that is active, paused or completed. With `mode` `due` it runs only if a due time has passed. Its next due time does not change. With `overlap` `skip` it does not run while its previous run has not ended. It never runs while 100 of its runs wait (`too_many_waiting`).",
  params,
  body: runRequest,
  response: {
    200: runAnswer,
    ...errorAnswers("not_found", "quota_exceeded", "draining", "scheduler_disabled", "storage_unavailable"),
  },
};

export const listRunsOfSchedule = {
  operationId: "listRunsOfSchedule",
  tags,
  summary: "List the runs of a schedule",
  description: "The runs of a schedule, newest first, a page at a time.",
  params,
  querystring: runQuery,
  response: { 200: runPage, ...errorAnswers("not_found", "storage_unavailable") },
};

export const previewSchedule = {
  operationId: "previewSchedule",
  tags,
  summary: "Preview a schedule",
  description:
    "How Rota understands a schedule, and when it would be due. Stores nothing. If a phrase is not understood, `details.accepted` lists the accepted forms.",
  body: previewInput,
  response: { 200: schedulePreview, ...errorAnswers() },
};
