import { TOO_MANY_WAITING } from "../../../model/run.ts";
import type { EndedTask, Fire, FiredSchedule, FireParams, NewRun } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";
import { signalCancelled } from "../tasks/steps/cancel-all.ts";
import { countBounded } from "../tasks/steps/count-bounded.ts";
import type { ScheduleRow } from "./schedule-row.ts";
import { pauseSchedule } from "./steps/end-run.ts";
import { writeRun } from "./steps/write-run.ts";

/** Stores the outcomes of due times. */
export function fireSchedules(db: SqliteDatabase, { fires, bounds }: FireParams): Promise<FiredSchedule[]> {
  return db.transactDurably((tx) => {
    const fired = fires.map((fire) => fireSchedule(tx, fire));
    if (bounds !== undefined) {
      const tasks = fired.flatMap(({ runs }) => runs.flatMap(({ task }) => task ?? []));
      countBounded(
        tx,
        bounds,
        tasks.map(({ seq }) => seq),
      );
    }
    const cancelled = fired.flatMap((each) => each.cancelled);
    if (cancelled.length > 0) signalCancelled(tx, cancelled);
    tx.signal("events", "work", "schedules");
    return fired;
  });
}

function fireSchedule(tx: Transaction, fire: Fire): FiredSchedule {
  const { tenant, id, revision, nextFireAt, whileDisabled = false } = fire;
  // Before its runs end: their ends, below, change the schedule depending on `next_fire_at`.
  const schedule = tx
    .prepare<ScheduleRow>(
      `update schedule set next_fire_at = @nextFireAt, revision = revision + 1
        where tenant = @tenant and id = @id and revision = @revision
          and (@whileDisabled = 0 or exists (select 1 from tenant where id = @tenant and disabled = 1)) returning *`,
    )
    .get({ tenant, id, revision, nextFireAt, whileDisabled: whileDisabled ? 1 : 0 });
  if (schedule === undefined) return { tenant, id, fired: false, runs: [], cancelled: [] };
  const cancelled: EndedTask[] = [];
  const { waitingMax = Number.POSITIVE_INFINITY } = fire;
  const runs = fire.runs.flatMap((run) => {
    const given = isCrowdedOut(tx, run, { schedule: schedule.id, waitingMax }) ? crowdedOut(run) : run;
    return (given && writeRun(tx, given, { schedule, cancelled })) ?? [];
  });
  if (completeIfSpent(tx, schedule)) return { tenant, id, fired: true, runs, cancelled };
  if (fire.pauses !== null) pauseSchedule(tx, schedule, { reason: fire.pauses, held: whileDisabled });
  else if (schedule.kind === "once") failIfMissed(tx, schedule, fire.runs.at(-1));
  else completeIfNeverDue(tx, schedule);
  return { tenant, id, fired: true, runs, cancelled };
}

/** Whether a run would fire while `waitingMax` runs of its schedule wait. */
function isCrowdedOut(
  tx: Transaction,
  run: NewRun,
  { schedule, waitingMax }: { schedule: number; waitingMax: number },
): boolean {
  if (run.status !== "running" || run.replaces) return false;
  const { open } = tx
    .prepare<{ open: number }>("select open_runs as open from schedule where id = ?")
    .get(schedule) ?? { open: 0 };
  if (open < waitingMax) return false;
  // The newest first: running ones are usually the oldest.
  const waiting = tx
    .prepare<{ n: number }>(
      `select count(*) as n from (
         select 1 from run r indexed by run_open cross join task t on t.id = r.task_id
          where r.schedule = @schedule and r.status = 'running'
            and not exists (select 1 from lease l where l.task_seq = t.seq)
          order by r.id desc limit +@waitingMax)`,
    )
    .get({ schedule, waitingMax });
  return (waiting?.n ?? 0) >= waitingMax;
}

/** The run to store instead; null: nothing, since a forced run has no due time. */
function crowdedOut({ dueAt, firstDueAt, moments, forced }: NewRun): NewRun | null {
  if (forced) return null;
  return { dueAt, firstDueAt, moments, forced, status: "skipped", reason: TOO_MANY_WAITING };
}

/** Completes a schedule that has fired `maxRuns` times. One that is due once ends with its run instead. */
function completeIfSpent(tx: Transaction, { id, kind, max_runs }: ScheduleRow): boolean {
  if (max_runs === null) return false;
  const spent = tx
    .prepare("update schedule set next_fire_at = null where id = ? and run_count >= max_runs")
    .run(id);
  if (spent.changes === 0 || kind === "once") return false;
  complete(tx, id);
  return true;
}

function completeIfNeverDue(tx: Transaction, { id, next_fire_at }: ScheduleRow): void {
  if (next_fire_at === null) complete(tx, id, "active");
}

/** With `from`: only if the schedule has that status. */
function complete(tx: Transaction, id: number, from?: "active"): void {
  tx.prepare(
    `update schedule set status = 'completed', held = 0, paused_reason = null, updated_at = ?
      where id = ? and status <> 'completed' and coalesce(?, status) = status`,
  ).run(tx.now, id, from ?? null);
}

/** A schedule that is due once and missed its due time has failed. */
function failIfMissed(tx: Transaction, { id }: ScheduleRow, last: NewRun | undefined): void {
  if (last?.status !== "missed") return;
  tx.prepare("update schedule set last_status = 'missed', last_error = ? where id = ?").run(last.reason, id);
  tx.prepare(
    `update schedule set status = 'failed', held = 0, paused_reason = null, updated_at = ?
      where id = ? and next_fire_at is null and open_runs = 0`,
  ).run(tx.now, id);
}
