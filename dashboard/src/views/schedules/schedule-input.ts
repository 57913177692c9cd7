import type {
  CatchUp,
  NewScheduleInput,
  Overlap,
  ScheduleChanges,
  ScheduledTask,
} from "../../../../src/client/index.ts";
import { jsonOf } from "../../forms/form-schema.ts";

export const WORK_KINDS = ["message", "instruction", "payload"] as const;
type WorkKind = (typeof WORK_KINDS)[number];

/** The values of the form, as text. */
export interface ScheduleFields {
  readonly schedule: string;
  readonly tz: string;
  readonly agent: string;
  readonly kind: WorkKind;
  readonly text: string;
  readonly name: string;
  readonly overlap: Overlap;
  readonly catch_up: CatchUp;
  readonly lane: string;
  /** Empty: never. */
  readonly pause_after_failures: string;
}

/** The initial values of the form. */
export function fieldsOf(schedule: ScheduledTask | undefined, tz: string): ScheduleFields {
  const kind = WORK_KINDS.find((each) => (schedule?.[each] ?? undefined) !== undefined) ?? "message";
  const work = schedule?.[kind];
  return {
    schedule: schedule?.schedule_phrase ?? "",
    tz: schedule?.tz ?? tz,
    agent: schedule?.agent_id ?? "",
    kind,
    text: kind === "payload" ? JSON.stringify(work, undefined, 2) : String(work ?? ""),
    name: schedule?.name ?? "",
    overlap: schedule?.overlap ?? "skip",
    catch_up: schedule?.catch_up ?? "one",
    lane: schedule?.lane ?? "",
    pause_after_failures: schedule?.pause_after_failures ? String(schedule.pause_after_failures) : "",
  };
}

/** Throws a `FormError` if the form is not valid. */
export function toNewSchedule(fields: ScheduleFields, enabled: boolean): NewScheduleInput {
  const { schedule, tz, agent, kind, text, name, overlap, catch_up, lane } = fields;
  return {
    schedule,
    tz,
    enabled,
    overlap,
    catch_up,
    [kind]: kind === "payload" ? jsonOf(kind, text) : text,
    ...(agent === "" ? {} : { agent }),
    ...(name === "" ? {} : { name }),
    ...(lane === "" ? {} : { lane }),
    ...(fields.pause_after_failures === ""
      ? {}
      : { pause_after_failures: Number(fields.pause_after_failures) }),
  };
}

/** The changed fields only: sending an unchanged `schedule` would restart its interval from now. */
export function toChanges(before: ScheduleFields, after: ScheduleFields): ScheduleChanges {
  const is = (name: keyof ScheduleFields) => before[name] !== after[name];
  return {
    ...(is("schedule") && { schedule: after.schedule }),
    ...(is("tz") && { tz: after.tz }),
    ...(is("agent") && { agent: after.agent }),
    ...(is("text") && {
      [after.kind]: after.kind === "payload" ? jsonOf(after.kind, after.text) : after.text,
    }),
    ...(is("name") && { name: after.name === "" ? null : after.name }),
    ...(is("overlap") && { overlap: after.overlap }),
    ...(is("catch_up") && { catch_up: after.catch_up }),
    ...(is("lane") && { lane: after.lane === "" ? null : after.lane }),
    ...(is("pause_after_failures") && { pause_after_failures: Number(after.pause_after_failures) || null }),
  };
}
