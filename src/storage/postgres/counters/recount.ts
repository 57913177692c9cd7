import { PRIORITY_CRITICAL } from "../../../model/priority.ts";
import type { CounterFault } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { readSql } from "../connection/sql-file.ts";
import { tenantRoom } from "../tenants/share-out.ts";
import { roomOf } from "./counters.ts";

/** Counting more tasks than this would block other writers too long for a precaution. */
const RECOUNTED_TASKS_MAX = 10_000;

export interface FaultRow {
  readonly counter: string;
  readonly stored: string | null;
  readonly counted: string | null;
}

/** Recounts one agent queue. If a counter is wrong, it repairs the queue and its lane. */
export async function recountOne(db: PostgresDatabase, params: { random: number }): Promise<CounterFault[]> {
  const rows = await db.write<FaultRow>({
    name: "recount_one",
    text: "select * from recount_one($1, $2, $3)",
    values: [params.random, RECOUNTED_TASKS_MAX],
  });
  return rows.map(toFault);
}

export function toFault({ counter, stored, counted }: FaultRow): CounterFault {
  return { counter, stored: toNumber(stored), counted: toNumber(counted) };
}

function toNumber(value: string | null): number | null {
  return value === null ? null : Number(value);
}

/** Agent queue and seq of each task that its batch, its session or its concurrency key holds back. */
const PARKED_TASKS = `
  select line, seq from task where parked is not null
  union all select t.line, t.seq from turn u join task t on t.seq = u.task_seq where u.stage = 'parked'`;

export const RECOUNT_FUNCTIONS = readSql(new URL("./recount.sql", import.meta.url), {
  PRIORITY_CRITICAL,
  ROOM: roomOf("n", "l.per_agent"),
  PARKED_TASKS,
  TENANT_ROOM: tenantRoom("t"),
});
