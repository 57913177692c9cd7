import { type ComeBack, isNamedBy, namedDependency, parseComeBack } from "../../dependency-error.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { Ledger } from "../counters/ledger.ts";
import { endWaitingTask, WAITING_COLUMNS, type WaitingTask } from "./end-waiting-task.ts";
import { enterQueue } from "./enter-queue.ts";
import { preemptTasks } from "./preempt-tasks.ts";
import {
  addComeBack,
  countUnmet,
  ENDED_COLUMNS,
  type EndedTask,
  findBlocking,
  isOverdue,
  requeueTask,
} from "./requeue-task.ts";
import { settleMoves } from "./settle-moves.ts";

/** To how many dependants one transaction passes ends and retries on; `release` does the rest. */
export const RELEASED_MAX = 100;

/** Passes ends and retries on to the remaining dependants; see `RELEASED_MAX`. */
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

/** Passes ends and retries on to up to `limit` dependants, inside a transaction. */
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

/**
 * Processes one release row. Returns to how many dependants it was passed on, but at least 1: a row without dependants costs
 * time, too.
 */
function tell(
  db: SqliteDatabase,
  ledger: Ledger,
  release: Release,
  { limit, now }: { limit: number; now: number },
): number {
  const comeBack = parseComeBack(release.error);
  const seqs =
    comeBack === null
      ? passEndOn(db, ledger, release, { limit, now })
      : bringBack(db, ledger, release, { ...comeBack, limit, now });
  const last = seqs.at(-1);
  if (last !== undefined && seqs.length === limit) {
    db.prepare("update release set after_seq = ? where seq = ?").run(last, release.seq);
  } else {
    db.prepare("delete from release where seq = ?").run(release.seq);
  }
  return Math.max(seqs.length, 1);
}

/** The next dependants of a release row. */
function dependantsOf<Row extends { readonly seq: number }>(
  db: SqliteDatabase,
  columns: string,
  { parent_seq: parentSeq, after_seq: afterSeq }: Release,
  limit: number,
): Row[] {
  return db
    .prepare<Row>(
      `select ${columns} from dependency d join task t on t.seq = d.child_seq
        where d.parent_seq = ? and d.child_seq > ? order by d.child_seq limit +?`,
    )
    .all(parentSeq, afterSeq, limit);
}

function passEndOn(
  db: SqliteDatabase,
  ledger: Ledger,
  release: Release,
  { limit, now }: { limit: number; now: number },
): number[] {
  const columns = `${WAITING_COLUMNS}, t.dependencies, t.run_at, t.deadline, t.deadline_after_ms, t.place`;
  const dependants = dependantsOf<Dependant>(db, columns, release, limit);
  for (const dependant of dependants) {
    // It may have ended already, or another dependency may have cancelled it.
    if (dependant.resting_state !== "waiting_dependency") continue;
    const { error } = release;
    if (error === null) meetDependency(db, ledger, dependant, now);
    else endWaitingTask(db, ledger, dependant, { state: "cancelled", error, dueTo: "dependency", now });
  }
  return dependants.map(({ seq }) => seq);
}

/** Queues dependants again that were cancelled because of the row's task, unless they could only end the same way. */
function bringBack(
  db: SqliteDatabase,
  ledger: Ledger,
  release: Release,
  { limit, now, ...comeBack }: ComeBack & { limit: number; now: number },
): number[] {
  const dependants = dependantsOf<EndedTask & { parent: string }>(
    db,
    `${ENDED_COLUMNS}, (select p.id from task p where p.seq = d.parent_seq) as parent`,
    release,
    limit,
  );
  for (const dependant of dependants) {
    const { seq, error, parent } = dependant;
    if (dependant.resting_state !== "cancelled" || !isNamedBy(error, parent, comeBack)) continue;
    if (isOverdue(dependant, now) || findBlocking(db, dependant) !== undefined) continue;
    requeueTask(db, ledger, dependant, now);
    if (dependant.has_dependants === 1) {
      addComeBack(db, ledger, seq, { retried: comeBack.retried, named: namedDependency(error) });
    }
  }
  return dependants.map(({ seq }) => seq);
}

interface Dependant extends WaitingTask {
  readonly place: number | null;
  readonly dependencies: number;
  readonly run_at: number | null;
  readonly deadline: number | null;
  readonly deadline_after_ms: number | null;
}

/**
 * Records that a dependency is done. After the last one the task is queued, or delayed until its `runAt`. The open dependencies
 * are counted instead of subtracting one: a task that was inserted or retried after that end has never counted it as open.
 */
function meetDependency(db: SqliteDatabase, ledger: Ledger, dependant: Dependant, now: number): void {
  const { seq, run_at: runAt, deadline_after_ms: afterMs } = dependant;
  const unmet = dependant.dependencies === 1 ? 0 : countUnmet(db, dependant);
  if (unmet > 0) {
    db.prepare("update task set unmet = ? where seq = ?").run(unmet, seq);
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
