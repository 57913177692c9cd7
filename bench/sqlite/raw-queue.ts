import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { inBatches, RAW_COLUMNS, type RawRow, rawRows } from "../raw-rows.ts";
import { perSecond } from "../workload.ts";

/** How much of a commit is on the disk when it returns: all of it with `full`, nothing yet with `normal`. */
export type Synchronous = "normal" | "full";

export interface RawSqliteParams {
  readonly folder: string;
  readonly synchronous: Synchronous;
  readonly tasks: number;
  /** Tasks in one transaction. */
  readonly batch: number;
}

/** Rows a second that prepared statements can insert: what taking tasks in could cost at the least. */
export function measureRawInserts(params: RawSqliteParams): Promise<number> {
  return withQueue(params, async (db) => {
    const batches = inBatches(rawRows(params.tasks), params.batch);
    const insert = inserter(db);
    const begun = performance.now();
    for (const batch of batches) insert(batch);
    return perSecond(params.tasks, performance.now() - begun);
  });
}

/** Rows a second that a plain queue can end and hand out, both in one transaction. */
export function measureRawDrain(params: RawSqliteParams): Promise<number> {
  return withQueue(params, async (db) => {
    const insert = inserter(db);
    for (const batch of inBatches(rawRows(params.tasks), 1_000)) insert(batch);
    const endAndClaim = drainer(db, params.batch);
    let ended = 0;
    let held: number[] = [];
    const begun = performance.now();
    do {
      ended += held.length;
      held = endAndClaim(held);
    } while (held.length > 0);
    const elapsedMs = performance.now() - begun;
    if (ended !== params.tasks) throw new Error(`${ended} of ${params.tasks} rows were ended`);
    return perSecond(params.tasks, elapsedMs);
  });
}

function inserter(db: Sqlite.Database): (batch: readonly RawRow[]) => void {
  const insert = db.prepare(
    `insert into task (${RAW_COLUMNS.join(", ")}) values (${RAW_COLUMNS.map(() => "?").join(", ")})`,
  );
  return db.transaction((batch: readonly RawRow[]) => {
    for (const row of batch) insert.run(...RAW_COLUMNS.map((column) => row[column]));
  }).immediate;
}

function drainer(db: Sqlite.Database, batch: number): (held: readonly number[]) => number[] {
  const end = db.prepare(
    `update task set state = 'done', completed_at = ?, executions = 1, last_outcome = 'done', result = 'null'
      where seq = ?`,
  );
  const claim = db.prepare<[number, number, number], { seq: number }>(
    `update task set state = 'running', started_at = ?, last_started_at = ?, last_node = 'node'
      where seq in (select seq from task where state = 'queued' order by priority, seq limit ?)
     returning *`,
  );
  return db.transaction((held: readonly number[]) => {
    const now = Date.now();
    for (const seq of held) end.run(now, seq);
    return claim.all(now, now, batch).map(({ seq }) => seq);
  }).immediate;
}

async function withQueue(
  { folder, synchronous }: RawSqliteParams,
  measure: (db: Sqlite.Database) => Promise<number>,
): Promise<number> {
  const own = await mkdtemp(join(folder, "raw-"));
  const db = new Sqlite(join(own, "raw.db"));
  try {
    // As Rota opens its file, apart from what is compared.
    db.pragma("journal_mode = wal");
    db.pragma("cache_size = -65536");
    db.pragma("wal_autocheckpoint = 4000");
    db.pragma("temp_store = memory");
    db.pragma(`synchronous = ${synchronous}`);
    db.exec(RAW_QUEUE);
    return await measure(db);
  } finally {
    db.close();
    await rm(own, { recursive: true, force: true });
  }
}

/** The columns of Rota's `task`, and the indexes that a plain queue needs. */
const RAW_QUEUE = `
create table task (
  seq               integer primary key,
  id                text not null unique,
  tenant            text not null,
  agent             text not null,
  line              integer not null,
  priority          integer not null,
  rank              integer not null,
  state             text not null,
  position          integer not null,
  created_at        integer not null,
  run_at            integer,
  deadline          integer,
  deadline_after_ms integer,
  max_retries_if_lost integer not null,
  retry_count       integer not null default 0,
  executions        integer not null default 0,
  started_at        integer,
  last_started_at   integer,
  last_outcome      text,
  last_node         text,
  completed_at      integer,
  spec              text not null,
  result            text,
  error             text
) strict;
create index task_queued on task (priority, seq) where state = 'queued';
`;
