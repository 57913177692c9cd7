import { FAILED_IN_A_ROW } from "../../../model/schedule.ts";
import { readSql } from "../connection/sql-file.ts";

/** Whether a one-time schedule `s` has nothing left to do once `c.runs` of its runs end. */
const IS_OVER = `
  s.kind = 'once' and s.next_fire_at is null and s.open_runs = c.runs
  -- A schedule that is paused before its only due time still has that to come.
  and (s.status <> 'paused' or coalesce(s.last_due_at >= (s.rule::json ->> 'atMs')::bigint, false))`;

/** What to set when runs of `s` start. A one-time schedule is active again until its run has ended. */
export function takenUp(s: string, runs: string, now: string): string {
  return `open_runs = ${s}.open_runs + ${runs},
          status = case when ${isTakenUp(s, runs)} then 'active' else ${s}.status end,
          updated_at = case when ${isTakenUp(s, runs)} then ${now} else ${s}.updated_at end`;
}

function isTakenUp(s: string, runs: string): string {
  return `${runs} > 0 and ${s}.kind = 'once' and ${s}.status in ('completed', 'failed')`;
}

/** The end of a task ends the run that it was created for. A retry of the task reopens the run. */
export const RUN_FUNCTIONS = readSql(new URL("./end-run.sql", import.meta.url), {
  IS_OVER,
  FAILED_IN_A_ROW,
  RUN_STARTS: takenUp("s", "1", "p_now"),
});
