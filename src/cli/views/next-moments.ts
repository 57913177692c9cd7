import type { ScheduledTask, SchedulePreview, SchedulePreviewInput, Schedules } from "../../client/index.ts";

const SHOWN = 5;

/**
 * When a schedule that recurs is due from its next moment on, with what clock changes do to that; null for any other, and
 * while it is paused. The server counts from where a preview begins, so it begins where its first moment is the next one.
 */
export async function nextMoments(
  schedule: ScheduledTask,
  schedules: Pick<Schedules, "preview">,
): Promise<SchedulePreview | null> {
  const { next_fire_at, schedule_kind, tz } = schedule;
  if (next_fire_at === 0 || schedule_kind === "once") return null;
  return schedules.preview({ ...stepsFrom(schedule), tz, count: SHOWN });
}

/** Steps by elapsed time begin one step before; everything else is due at times of its own. */
function stepsFrom({
  next_fire_at,
  schedule_phrase,
  recur_json,
}: ScheduledTask): Pick<SchedulePreviewInput, "schedule" | "from"> {
  const rule = JSON.parse(recur_json ?? "{}") as { kind?: string; everyMs?: number };
  if (rule.kind !== "every" || rule.everyMs === undefined) {
    return { schedule: schedule_phrase, ...from(next_fire_at - 1) };
  }
  const { everyMs } = rule;
  return { schedule: { kind: "every", everyMs }, ...from(next_fire_at - everyMs / 1_000) };
}

function from(seconds: number): { from: Date } {
  return { from: new Date(seconds * 1_000) };
}
