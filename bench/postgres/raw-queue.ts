import type { Client } from "pg";
import { type EmptyStorage, type NewStorage, withStorage } from "../empty-storage.ts";
import { inBatches, RAW_COLUMNS, type RawRow, rawRows } from "../raw-rows.ts";
import { perSecond } from "../workload.ts";
import { connect } from "./database.ts";

export interface RawPostgresParams {
  readonly tasks: number;
  /** Tasks in one transaction, which is one statement. */
  readonly batch: number;
}

/** Rows a second that one connection can insert: what taking tasks in could cost at the least. */
export function measureRawInserts(newStorage: NewStorage, params: RawPostgresParams): Promise<number> {
  return withStorage(newStorage, async (target) => {
    const client = await makeQueue(target);
    const batches = inBatches(rawRows(params.tasks), params.batch);
    await target.settle();
    const begun = performance.now();
    for (const batch of batches) await insert(client, batch);
    const elapsedMs = performance.now() - begun;
    await client.end();
    return perSecond(params.tasks, elapsedMs);
  });
}

/** Rows a second that a plain queue can end and hand out, both in one transaction, over so many connections. */
export function measureRawDrain(
  newStorage: NewStorage,
  { tasks, batch, connections }: RawPostgresParams & { connections: number },
): Promise<number> {
  return withStorage(newStorage, async (target) => {
    const first = await makeQueue(target);
    for (const rows of inBatches(rawRows(tasks), 1_000)) await insert(first, rows);
    const others = Array.from({ length: connections - 1 }, () => connect(target.url));
    const clients = [first, ...(await Promise.all(others))];
    await target.settle();
    const begun = performance.now();
    const ended = await Promise.all(clients.map((client) => drain(client, batch)));
    const elapsedMs = performance.now() - begun;
    await Promise.all(clients.map((client) => client.end()));
    const total = ended.reduce((sum, count) => sum + count, 0);
    if (total !== tasks) throw new Error(`${total} of ${tasks} rows were ended`);
    return perSecond(tasks, elapsedMs);
  });
}

async function drain(client: Client, batch: number): Promise<number> {
  let ended = 0;
  let held: string[] = [];
  do {
    ended += held.length;
    const { rows } = await client.query<{ seq: string }>({
      name: "end_and_claim",
      text: END_AND_CLAIM,
      values: [Date.now(), held, batch],
    });
    held = rows.map(({ seq }) => seq);
  } while (held.length > 0);
  return ended;
}

async function insert(client: Client, rows: readonly RawRow[]): Promise<void> {
  const values = RAW_COLUMNS.map((column) => rows.map((row) => row[column]));
  await client.query({ name: "insert_rows", text: INSERT_ROWS, values });
}

async function makeQueue(target: EmptyStorage): Promise<Client> {
  const client = await connect(target.url);
  await client.query(RAW_QUEUE);
  return client;
}

const INSERT_ROWS = `
insert into task (${RAW_COLUMNS.join(", ")})
select * from unnest($1::bigint[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::integer[], $7::bigint[],
                     $8::text[], $9::integer[], $10::bigint[], $11::integer[], $12::text[])`;

// One statement is one transaction and one round trip: nothing that speaks to the server can do with less.
const END_AND_CLAIM = `
with ended as (
  update task set state = 'done', completed_at = $1, executions = 1, last_outcome = 'done', result = 'null'
   where seq = any ($2::bigint[]))
update task set state = 'running', started_at = $1, last_started_at = $1, last_node = 'node'
 where seq in (select seq from task where state = 'queued' order by priority, seq limit $3 for update skip locked)
returning *`;

/** The columns of Rota's `task`, and the indexes that a plain queue needs. */
const RAW_QUEUE = `
create table task (
  seq               bigint primary key,
  id                text collate "C" not null unique,
  tenant            text collate "C" not null,
  agent             text collate "C" not null,
  line              bigint not null,
  priority          integer not null,
  rank              bigint not null,
  state             text collate "C" not null,
  position          integer not null,
  created_at        bigint not null,
  run_at            bigint,
  deadline          bigint,
  deadline_after_ms bigint,
  max_retries_if_lost integer not null,
  retry_count       integer not null default 0,
  executions        integer not null default 0,
  started_at        bigint,
  last_started_at   bigint,
  last_outcome      text,
  last_node         text,
  completed_at      bigint,
  spec              text not null,
  result            text,
  error             text
) with (fillfactor = 85);
create index task_queued on task (priority, seq) where state = 'queued';
`;
