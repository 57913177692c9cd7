import type { Fire, FiredSchedule, FireParams, NewRun } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { orBoundExceeded } from "../connection/errors.ts";
import { readSql } from "../connection/sql-file.ts";
import { cleanText } from "../connection/text.ts";
import { type CancelledJson, signalCancelled, toEndedTask } from "../tasks/cancel-open-tasks.ts";
import { isDeferred } from "../tasks/deferred-work.ts";
import { type InsertedRow, toInserted } from "../tasks/insert-tasks.ts";
import { PREEMPT } from "../tasks/preempt-tasks.ts";
import { isOf } from "../tasks/read-tasks.ts";
import { RELEASED_MAX } from "../tasks/settle-moves.ts";
import { toTaskRow } from "../tasks/task-forms.ts";
import { mayShareRow } from "./write-runs.ts";

/** Records the outcome of due times, and creates the tasks of those that fire. */
export async function fireSchedules(
  db: PostgresDatabase,
  { fires, bounds }: FireParams,
): Promise<FiredSchedule[]> {
  if (fires.length === 0) return [];
  const rows = await db
    .write<FiredRow>({
      name: "fire_schedules",
      text: "select * from fire_schedules($1, $2, $3, $4)",
      values: [
        JSON.stringify(fires.map(toFireRow)),
        JSON.stringify(toRunRows(fires)),
        bounds === undefined ? null : JSON.stringify(bounds),
      ],
    })
    .catch((error) => {
      throw orBoundExceeded(error);
    });
  const byFire = new Map(rows.map((row) => [row.fire, row]));
  const fired = fires.map(({ tenant, id }, index): FiredSchedule => {
    const row = byFire.get(index);
    if (row === undefined) return { tenant, id, fired: false, runs: [], cancelled: [] };
    const runs = row.runs.map((run) => ({ id: run.id, task: run.task && toInserted(run.task) }));
    return { tenant, id, fired: true, runs, cancelled: row.cancelled.map(toEndedTask) };
  });
  signalFired(db, fired);
  return fired;
}

function signalFired(db: PostgresDatabase, fired: readonly FiredSchedule[]): void {
  signalCancelled(
    db,
    fired.flatMap(({ cancelled }) => cancelled),
  );
  const tasks = fired.flatMap(({ runs }) => runs.flatMap(({ task }) => task ?? []));
  if (tasks.length > 0) {
    db.signal({ kind: "events" });
    db.signal({ kind: "work" });
  }
  if (tasks.some(({ runAt, deadline }) => runAt !== null || deadline !== null)) db.signal({ kind: "due" });
  db.signal({ kind: "schedules" });
}

interface FiredRow {
  readonly fire: number;
  readonly runs: readonly { readonly id: number; readonly task: InsertedRow | null }[];
  readonly cancelled: readonly CancelledJson[];
}

function toFireRow(fire: Fire, n: number): object {
  const { tenant, id, revision, nextFireAt, pauses, whileDisabled = false } = fire;
  const reason = pauses && cleanText(pauses);
  return { n, tenant, id, revision, next_fire_at: nextFireAt, pauses: reason, while_disabled: whileDisabled };
}

/** All runs in order. */
function toRunRows(fires: readonly Fire[]): object[] {
  return fires
    .flatMap(({ id, runs, waitingMax }, fire) =>
      runs.map((run) => ({ fire, schedule: id, waiting_max: waitingMax, ...toRunRow(run) })),
    )
    .map((run, n) => ({ n, ...run }));
}

function toRunRow(run: NewRun): object {
  const { dueAt, firstDueAt, moments, forced, status } = run;
  const row = { due_at: dueAt, first_due_at: firstDueAt, moments, forced, status };
  switch (run.status) {
    case "running":
      return {
        ...row,
        request_id: cleanText(run.requestId),
        replaces: run.replaces,
        task: toTaskRow(run.task),
      };
    case "failed":
      return { ...row, request_id: cleanText(run.requestId), error: cleanText(run.error) };
    case "skipped":
    case "missed":
      return { ...row, reason: cleanText(run.reason) };
  }
}

/**
 * Nearly always, the outcome of one schedule does not depend on another, nor one run on the next: then all are written at once.
 * Where order matters, they are written in order.
 */
export const FIRE_FUNCTIONS = readSql(new URL("./fire-schedules.sql", import.meta.url), {
  IS_OF_TENANT: isOf("t", "p_bounds ->> 'tenant'"),
  SESSIONS_DEFERRED: isDeferred("sessions"),
  BATCHES_DEFERRED: isDeferred("batches"),
  KEYS_DEFERRED: isDeferred("keys"),
  RELEASED_MAX,
  PREEMPT,
  MAY_SHARE_ROW: mayShareRow("r"),
});
