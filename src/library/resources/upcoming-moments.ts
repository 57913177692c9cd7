import type { UpcomingMoments } from "../../interface/schedules.ts";
import { toSeconds } from "../../model/text/epoch-seconds.ts";
import { Upcoming, type UpcomingRange } from "../../schedules/upcoming.ts";
import type { Steps, WorkTurns } from "../../services/work-turns.ts";
import type { ScheduleRecord, Storage } from "../../storage/storage.ts";

/** Schedules that are read at once. */
const SLICE = 50;

/** The due times of a tenant's active schedules within a range, earliest first. Other work runs between their computation. */
export async function upcomingMoments(
  { storage, work }: { readonly storage: Storage; readonly work: WorkTurns },
  tenant: string,
  range: UpcomingRange,
): Promise<UpcomingMoments> {
  const upcoming = new Upcoming<DueRecord>(range);
  for (let after = 0; ; ) {
    const records = await storage.schedules.page({ tenant, after, limit: SLICE });
    await work.run(addAll(upcoming, records));
    const last = records.at(-1);
    if (last === undefined) break;
    after = last.id;
  }
  const { dueTimes, truncated } = upcoming.result;
  const moments = dueTimes.map(({ schedule: { record }, at }) => ({
    schedule_id: record.id,
    name: record.name,
    agent: record.agent,
    at: toSeconds(at),
    zone: record.rule.tz,
  }));
  return { moments, truncated };
}

type DueRecord = ReturnType<typeof toDueSchedule>;

/** Finding that nothing of a schedule is due takes about as long as a due time. */
function* addAll(upcoming: Upcoming<DueRecord>, records: readonly ScheduleRecord[]): Steps<void> {
  for (const record of records) {
    yield* upcoming.add(toDueSchedule(record));
    yield;
  }
}

function toDueSchedule(record: ScheduleRecord) {
  const { rule, anchorAt, nextFireAt, untilAt, maxRuns, runCount } = record;
  return {
    record,
    rule,
    anchorAt,
    nextFireAt,
    untilAt,
    runsLeft: maxRuns === null ? null : maxRuns - runCount,
  };
}
