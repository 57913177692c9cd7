import type { ScheduledTask, SchedulePreview, SchedulePreviewInput, Schedules } from "../../client/index.ts";

const SHOWN = 5;

/**
 * The next due times of a recurring schedule, with notes about clock changes. Null for other schedules, and for paused ones. The
 * server computes due times from `from`, so `from` is chosen such that the first one is the schedule's next.
 */
export async function nextMoments(
  schedule: ScheduledTask,
  schedules: Pick<Schedules, "preview">,
): Promise<SchedulePreview | null> {
  const { next_fire_at, schedule_kind, tz, max_runs, run_count, until } = schedule;
  if (next_fire_at === 0 || schedule_kind === "once") return null;
  const left = max_runs === undefined ? SHOWN : Math.max(1, max_runs - run_count);
  const preview = await schedules.preview({ ...stepsFrom(schedule), tz, count: Math.min(SHOWN, left) });
  if (until === undefined) return preview;
  return { ...preview, next: preview.next.filter((time) => Date.parse(time) <= until * 1_000) };
}

/** A step of elapsed time counts from `from`, so it begins one step before. Other rules do not depend on `from`. */
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
