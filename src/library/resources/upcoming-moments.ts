import { setImmediate as yieldToOthers } from "node:timers/promises";
import type { UpcomingMoments } from "../../interface/schedules.ts";
import { toSeconds } from "../../model/text/epoch-seconds.ts";
import { Upcoming, type UpcomingRange } from "../../schedules/upcoming.ts";
import type { ScheduleRecord, Storage } from "../../storage/storage.ts";

/** Schedules that are read, and whose due times are computed, before other requests get their turn. */
const SLICE = 50;

/** The due times of a tenant's active schedules within a range, earliest first. */
export async function upcomingMoments(
  storage: Storage,
  tenant: string,
  range: UpcomingRange,
): Promise<UpcomingMoments> {
  const upcoming = new Upcoming<ReturnType<typeof toDueSchedule>>(range);
  for (let after = 0; ; ) {
    const records = await storage.schedules.page({ tenant, after, limit: SLICE });
    for (const record of records) upcoming.add(toDueSchedule(record));
    const last = records.at(-1);
    if (last === undefined) break;
    after = last.id;
    await yieldToOthers();
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
