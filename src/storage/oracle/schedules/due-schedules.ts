import { DUE_BYTES, type DueParams, type ScheduleRecord } from "../../storage.ts";
import type { OracleSchedule, OracleState } from "../state.ts";
import { earliest, toScheduleRecord } from "./schedules.ts";

export function dueSchedules(state: OracleState, { limit, after = "" }: DueParams): ScheduleRecord[] {
  const now = state.clock.now();
  const due = state.schedules
    .filter(({ nextFireAt }) => nextFireAt !== null && nextFireAt <= now)
    .sort((a, b) => (a.nextFireAt ?? 0) - (b.nextFireAt ?? 0) || a.id - b.id);
  const ids = [...new Set(due.map(({ tenant }) => tenant))].sort();
  const inTurn = [...ids.filter((id) => id > after), ...ids.filter((id) => id <= after)].slice(0, limit);
  const share = due.length <= limit ? limit : Math.floor(limit / inTurn.length);
  const ofTenants = inTurn.map((id) =>
    withoutLarge(due.filter(({ tenant }) => tenant === id).slice(0, share)),
  );
  const taken: OracleSchedule[] = [];
  for (let round = 0; round < share; round += 1) {
    for (const own of ofTenants) taken.push(...own.slice(round, round + 1));
  }
  return taken.map(toScheduleRecord);
}

/** The first ones, that take up to `DUE_BYTES` together, and at least one. */
function withoutLarge(due: readonly OracleSchedule[]): OracleSchedule[] {
  let bytes = 0;
  return due.filter(({ work, metadata }, index) => {
    bytes += Buffer.byteLength(JSON.stringify([work, metadata]));
    return index === 0 || bytes <= DUE_BYTES;
  });
}

export function nextScheduleAt(state: OracleState, { tenant }: { tenant?: string } = {}): number | null {
  return earliest(state.schedules.filter((schedule) => schedule.tenant === (tenant ?? schedule.tenant)));
}
