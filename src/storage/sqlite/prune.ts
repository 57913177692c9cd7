import type { SqliteDatabase } from "./database.ts";
import { Ledger } from "./ledger.ts";

/**
 * Deletes a slice of what is past its time. The log is the list of what to delete: walking it from its start finds the
 * tasks that ended before the cutoff without an index on their end, which every finish would have to keep.
 */
export async function prune(
  db: SqliteDatabase,
  params: { retentionMs: number; rejectedMax: number; limit: number },
): Promise<{ tasks: number; more: boolean }> {
  return db.write((now) => {
    // Each has a ledger of its own: how many rejected tasks there are is counted after the old ones have gone.
    const byAge = pruneEvents(db, now - params.retentionMs, params.limit);
    const rejected = pruneRejected(db, params.rejectedMax, params.limit);
    return {
      tasks: byAge.tasks + rejected,
      more: byAge.events === params.limit || rejected === params.limit,
    };
  });
}

function pruneEvents(db: SqliteDatabase, cutoff: number, limit: number): { events: number; tasks: number } {
  const oldest = db
    .prepare<{ seq: number; at: number; task_seq: number }>(
      "select seq, at, task_seq from event order by seq limit ?",
    )
    .all(limit);
  const fresh = oldest.findIndex(({ at }) => at >= cutoff);
  const past = fresh === -1 ? oldest : oldest.slice(0, fresh);
  const last = past.at(-1);
  if (last === undefined) return { events: 0, tasks: 0 };
  keepNumber(db, "event", last.seq);
  db.prepare("delete from event where seq <= ?").run(last.seq);
  const ledger = new Ledger(db);
  let tasks = 0;
  for (const seq of new Set(past.map(({ task_seq }) => task_seq)))
    tasks += deleteEnded(db, ledger, seq, cutoff);
  ledger.save();
  return { events: past.length, tasks };
}

/** Deletes a task if it had ended before the cutoff, and answers how many that were. */
function deleteEnded(db: SqliteDatabase, ledger: Ledger, seq: number, cutoff: number): number {
  const task = db
    .prepare<{ tenant: string; resting_state: string }>(
      "delete from task where seq = ? and completed_at < ? returning tenant, resting_state",
    )
    .get(seq, cutoff);
  if (task === undefined) return 0;
  db.prepare("delete from attempt where task_seq = ?").run(seq);
  keepNumber(db, "task", seq);
  ledger.count(task.tenant, task.resting_state, -1);
  return 1;
}

function pruneRejected(db: SqliteDatabase, max: number, limit: number): number {
  const crowded = db
    .prepare<{ tenant: string; tasks: number }>(
      "select tenant, tasks from tally where state = 'rejected' and tasks > ?",
    )
    .all(max);
  const ledger = new Ledger(db);
  let deleted = 0;
  for (const { tenant, tasks } of crowded) {
    const seqs = db
      .prepare<{ seq: number }>(
        "select seq from task where tenant = ? and resting_state = 'rejected' order by seq limit ?",
      )
      .all(tenant, Math.min(tasks - max, limit - deleted));
    for (const { seq } of seqs) deleted += deleteEnded(db, ledger, seq, Number.MAX_SAFE_INTEGER);
  }
  ledger.save();
  return deleted;
}

/** Numbers are never given out twice, even when the row that had the highest one is deleted. */
function keepNumber(db: SqliteDatabase, name: "event" | "task", value: number): void {
  db.prepare(
    `insert into high_water (name, value) values (?, ?)
     on conflict (name) do update set value = max(value, excluded.value)`,
  ).run(name, value);
}
