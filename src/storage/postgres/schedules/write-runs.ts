import { REPLACED, SKIPPED_ROWS_MAX, TOO_MANY_WAITING } from "../../../model/run.ts";
import { readSql } from "../connection/sql-file.ts";
import { takenUp } from "./end-run.ts";

/** The tasks of the open runs of a schedule, with these runs. */
export function openTasksOf(schedule: string): string {
  return `select (select t.seq from task t where t.id = r.task_id) as seq, r.schedule, r.id as run
            from run r where r.schedule + 0 = ${schedule} and r.status = 'running'`;
}

/** Whether a run does not fire, and so may share the row of equal ones right before it. */
export function mayShareRow(run: string): string {
  return `${run}.status in ('missed', 'skipped')`;
}

/** Whether enough due times right before `run` were skipped for the same reason. */
function isSkippedAgain(run: string): string {
  return `(${run}.reason = '${TOO_MANY_WAITING}' or (
            select count(*) from (select a.status, a.reason, a.forced from run a where a.schedule = ${run}.schedule
                                   order by a.id + 0 desc limit ${SKIPPED_ROWS_MAX}) a
             where a.status = 'skipped' and a.reason = ${run}.reason and not a.forced) = ${SKIPPED_ROWS_MAX})`;
}

/** Admission does not limit runs: their schedule does. */
const NO_LIMIT = Number.MAX_SAFE_INTEGER;

/** Whether a run may be skipped because too many wait: there is a limit, and the run fires and replaces none of them. */
function hasWaitingMax(run: string): string {
  return `(${run}.status = 'running' and ${run}.waiting_max is not null and ${run}.replaces is not true)`;
}

/** Functions that write runs: the outcome of due times, and the tasks of those that fire. */
export const WRITE_RUN_FUNCTIONS = readSql(new URL("./write-runs.sql", import.meta.url), {
  HAS_WAITING_MAX: hasWaitingMax("r"),
  MAY_SHARE_ROW: mayShareRow("r"),
  NO_LIMIT,
  TOO_MANY_WAITING,
  FIRST_MAY_SHARE_ROW: mayShareRow("f"),
  IS_SKIPPED_AGAIN: isSkippedAgain("l"),
  OPEN_TASKS: openTasksOf("f.schedule"),
  REPLACED,
  RUNS_START: takenUp("s", "d.running", "p_now"),
});
