import type { SqliteDatabase } from "./database.ts";
import { endWaitingTask, WAITING_COLUMNS, type WaitingTask } from "./end-waiting-task.ts";
import { enterQueue } from "./enter-queue.ts";
import { Ledger } from "./ledger.ts";
import { preemptTasks } from "./preempt-tasks.ts";
import { settleMoves } from "./settle-moves.ts";

/** How many dependants one transaction tells; the rest waits for `release`. */
export const RELEASED_MAX = 100;

/** Tells those that are left; see `RELEASED_MAX`. */
export async function release(db: SqliteDatabase, params: { limit: number }): Promise<{ more: boolean }> {
  const more = db.write((now) => {
    const ledger = new Ledger(db);
    ledger.hasReleases = true;
    const told = settleMoves(db, ledger, now, params.limit);
    preemptTasks(db, ledger, now);
    ledger.save();
    if (told > 0) db.signal({ kind: "events" });
    return ledger.hasReleases;
  });
  await db.durable();
  return { more };
}

/** Tells up to `limit` dependants of ends that they have not heard of, inside a transaction. */
export function releaseDependants(db: SqliteDatabase, ledger: Ledger, limit: number, now: number): number {
  if (!ledger.hasReleases) return 0;
  let told = 0;
  while (told < limit) {
    const release = db
      .prepare<Release>("select seq, parent_seq, error, after_seq from release order by seq limit 1")
      .get();
    if (release === undefined) {
      ledger.hasReleases = false;
      break;
    }
    told += tell(db, ledger, release, { limit: limit - told, now });
  }
  return told;
}

interface Release {
  readonly seq: number;
  readonly parent_seq: number;
  readonly error: string | null;
  readonly after_seq: number;
}

/** One that has nobody left to tell counts, too: it took its time. */
function tell(
  db: SqliteDatabase,
  ledger: Ledger,
  release: Release,
  { limit, now }: { limit: number; now: number },
): number {
  const dependants = db
    .prepare<Dependant>(
      `select ${WAITING_COLUMNS}, t.unmet, t.run_at, t.deadline, t.deadline_after_ms, t.place
         from dependency d join task t on t.seq = d.child_seq
        where d.parent_seq = ? and d.child_seq > ? order by d.child_seq limit +?`,
    )
    .all(release.parent_seq, release.after_seq, limit);
  for (const dependant of dependants) {
    // It may have ended by itself, or have been told of an earlier end.
    if (dependant.resting_state !== "waiting_dependency") continue;
    const { error } = release;
    if (error === null) oneLess(db, ledger, dependant, now);
    else endWaitingTask(db, ledger, dependant, { state: "cancelled", error, dueTo: "dependency", now });
  }
  const last = dependants.at(-1);
  if (last !== undefined && dependants.length === limit) {
    db.prepare("update release set after_seq = ? where seq = ?").run(last.seq, release.seq);
  } else {
    db.prepare("delete from release where seq = ?").run(release.seq);
  }
  return Math.max(dependants.length, 1);
}

interface Dependant extends WaitingTask {
  readonly place: number | null;
  readonly unmet: number;
  readonly run_at: number | null;
  readonly deadline: number | null;
  readonly deadline_after_ms: number | null;
}

/** One dependency less; with the last, the task can start, or waits for its moment. */
function oneLess(db: SqliteDatabase, ledger: Ledger, dependant: Dependant, now: number): void {
  const { seq, unmet, run_at: runAt, deadline_after_ms: afterMs } = dependant;
  if (unmet > 1) {
    db.prepare("update task set unmet = unmet - 1 where seq = ?").run(seq);
    return;
  }
  const delayed = runAt !== null && runAt > now;
  const state = delayed ? "delayed" : "queued";
  const deadline = afterMs === null ? dependant.deadline : Math.max(now, runAt ?? now) + afterMs;
  db.prepare("update task set unmet = 0, resting_state = ?, deadline = ? where seq = ?").run(
    state,
    deadline,
    seq,
  );
  const line = ledger.line(dependant.line);
  if (!delayed) enterQueue(db, ledger, dependant, now);
  ledger.count(line.tenant, "waiting_dependency", -1);
  ledger.count(line.tenant, state, 1);
  if (delayed || deadline !== null) db.signal({ kind: "due" });
  if (!delayed) db.signal({ kind: "work" });
}
