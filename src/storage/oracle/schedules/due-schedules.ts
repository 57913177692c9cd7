import type { DueParams, ScheduleRecord } from "../../storage.ts";
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
  const taken: OracleSchedule[] = [];
  for (let round = 0; round < share; round += 1) {
    for (const id of inTurn) taken.push(...due.filter(({ tenant }) => tenant === id).slice(round, round + 1));
  }
  return taken.map(toScheduleRecord);
}

export function nextScheduleAt(state: OracleState, { tenant }: { tenant?: string } = {}): number | null {
  return earliest(state.schedules.filter((schedule) => schedule.tenant === (tenant ?? schedule.tenant)));
}
