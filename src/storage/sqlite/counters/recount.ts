import type { CounterFault } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";
import { refreshLines } from "../tenants/steps/refresh-limits.ts";
import { Ledger, LINE_COLUMNS, type Line } from "./ledger.ts";
import { TENANT_LINE_COLUMNS, type TenantLine } from "./tenant-ledger.ts";

/** Counting more than this would block all other work too long for a mere precaution. */
const RECOUNTED_TASKS_MAX = 10_000;

/** Recounts one agent queue, and corrects it, its lane and its tenant if they are off. */
export async function recountOne(db: SqliteDatabase, params: { random: number }): Promise<CounterFault[]> {
  return db.transact((tx) => {
    // This reads and writes rows without the ledger.
    db.lines.clear();
    const notQueued = tx
      .prepare<{ tasks: number }>(`select sum(tasks) as tasks from tally where ${NOT_QUEUED}`)
      .get();
    if ((notQueued?.tasks ?? 0) > RECOUNTED_TASKS_MAX) return [];
    const newest = tx.prepare<{ id: number | null }>("select max(id) as id from line").get()?.id ?? 0;
    const line = tx
      .prepare<Line>(
        `select ${LINE_COLUMNS} from line where id >= ? and waiting + inflight <= ? order by id limit 1`,
      )
      .get(Math.ceil(params.random * newest), RECOUNTED_TASKS_MAX);
    if (line === undefined) return [];
    const counted = tx.prepare<LineCount>(`${COUNT_LINES} where id = ?`).get(line.id) as LineCount;
    const faults = lineFaults(line, counted);
    if (faults.length > 0) mend(tx, line, counted);
    return [...faults, ...recountTenant(tx, line, { anyway: faults.length > 0 })];
  });
}

interface LineCount {
  readonly waiting: number;
  readonly ready: number;
  readonly inflight: number;
  readonly head_rank: number | null;
  readonly head_seq: number | null;
}

/** Tasks that wait without being queued. */
const NOT_QUEUED = "state in ('waiting_dependency', 'delayed')";

const COUNT_LINES = `
  with parked as materialized
         (select line, count(*) as tasks
            from (select line from task indexed by task_by_state where resting_state = 'waiting_dependency'
                  union all select line from task indexed by task_by_state where resting_state = 'delayed'
                  union all select line from task indexed by task_parked where parked is not null)
           group by line),
       held as materialized (select line, count(*) as tasks from lease group by line)
  select (select count(*) from ready where line = id)
           + coalesce((select tasks from parked where line = id), 0) as waiting,
         (select count(*) from ready where line = id) as ready,
         coalesce((select tasks from held where line = id), 0) as inflight,
         ${headOfLine("head_rank", "head_seq")}
    from line`;

/** The rank and number of the first ready task of a row of `line`, as columns of these names. */
export function headOfLine(rank: string, seq: string): string {
  return `(select rank from ready where line = id order by rank, task_seq limit 1) as ${rank},
          (select task_seq from ready where line = id order by rank, task_seq limit 1) as ${seq}`;
}

function lineFaults(line: Line, counted: LineCount): CounterFault[] {
  return (["waiting", "ready", "inflight", "head_rank", "head_seq"] as const).flatMap((column) =>
    compare(`line ${line.lane}/${line.tenant}/${line.agent} ${column}`, line[column], counted[column]),
  );
}

function mend(tx: Transaction, line: Line, counted: LineCount): void {
  tx.prepare(
    `update lane set waiting = waiting + @waiting, inflight = inflight + @inflight,
                     exempt = exempt + iif(exists (select 1 from tenant where id = @tenant and disabled = 1), @waiting, 0)
      where name = @lane`,
  ).run({
    waiting: counted.waiting - line.waiting,
    inflight: counted.inflight - line.inflight,
    tenant: line.tenant,
    lane: line.lane,
  });
  tx.prepare(
    `update line set waiting = @waiting, ready = @ready, inflight = @inflight, head_rank = @head_rank,
                     head_seq = @head_seq, room = 0, startable = 0
      where id = @id`,
  ).run({ ...counted, id: line.id });
  refreshLines(tx, "tenant = ? and agent = ?", [line.tenant, line.agent]);
}

interface TenantCount {
  readonly waiting: number;
  readonly exempt: number;
  readonly inflight: number;
  readonly supply: number;
  readonly urgent_lines: number;
}

const COUNTED = ["waiting", "exempt", "inflight", "supply", "urgent_lines"] as const;

/** Compares the counters of tenants with those of their agent queues, which are checked separately. */
export function tenantFaults(
  db: SqliteDatabase,
  condition: string,
  values: readonly (string | number)[],
): CounterFault[] {
  const ledger = new Ledger(db);
  return db
    .prepare<TenantLine & { startable: 0 | 1 }>(
      `select ${TENANT_LINE_COLUMNS}, startable from tenant_line where ${condition}`,
    )
    .all(...values)
    .flatMap((line) => {
      const counted = countTenant(db, line);
      const name = `tenant ${line.lane}/${line.tenant}`;
      return [
        ...COUNTED.flatMap((column) => compare(`${name} ${column}`, line[column], counted[column])),
        ...compare(`${name} startable`, line.startable, ledger.tenants.room(line) > 0 ? 1 : 0),
      ];
    });
}

function countTenant(
  db: SqliteDatabase,
  { tenant, lane }: { readonly tenant: string; readonly lane: string },
): TenantCount {
  return db
    .prepare<TenantCount>(
      `select coalesce(sum(waiting), 0) as waiting, coalesce(sum(exempt), 0) as exempt,
              coalesce(sum(inflight), 0) as inflight, coalesce(sum(room), 0) as supply,
              coalesce(sum(room > 0 and ahead = 1), 0) as urgent_lines
         from line where tenant = ? and lane = ?`,
    )
    .get(tenant, lane) as TenantCount;
}

/**
 * Recounts the tenant of an agent queue, and corrects it if it is off. It skips a tenant with so many queues that it would
 * block other work, unless the agent queue was corrected.
 */
function recountTenant(
  tx: Transaction,
  { tenant, lane }: Line,
  { anyway }: { anyway: boolean },
): CounterFault[] {
  const agents = tx
    .prepare<{ lines: number }>(
      "select count(*) as lines from (select 1 from line where tenant = ? limit +?)",
    )
    .get(tenant, RECOUNTED_TASKS_MAX);
  if ((agents?.lines ?? 0) >= RECOUNTED_TASKS_MAX && !anyway) return [];
  const faults = tenantFaults(tx.db, "tenant = ? and lane = ?", [tenant, lane]);
  if (faults.length === 0) return [];
  const ledger = new Ledger(tx.db);
  Object.assign(ledger.tenants.of({ lane, tenant }), countTenant(tx.db, { lane, tenant }));
  ledger.tenants.save({ limitsChanged: true });
  tx.db.lines.clear();
  return faults;
}

export function compare(counter: string, stored: number | null, counted: number | null): CounterFault[] {
  return stored === counted ? [] : [{ counter, stored, counted }];
}
