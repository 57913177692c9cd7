import type { CounterFault } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";
import { refreshAgentQueues } from "../tenants/steps/refresh-limits.ts";
import { AGENT_QUEUE_COLUMNS, type AgentQueue, Ledger } from "./ledger.ts";
import { TENANT_AGENT_QUEUE_COLUMNS, type TenantQueue } from "./tenant-ledger.ts";

/** Counting more than this would block all other work too long for a mere precaution. */
const RECOUNTED_TASKS_MAX = 10_000;

/** Recounts one agent queue, and corrects it, its lane and its tenant if they are off. */
export async function recountOne(db: SqliteDatabase, params: { random: number }): Promise<CounterFault[]> {
  return db.transact((tx) => {
    // This reads and writes rows without the ledger.
    db.agentQueues.clear();
    const notQueued = tx
      .prepare<{ tasks: number }>(`select sum(tasks) as tasks from tally where ${NOT_QUEUED}`)
      .get();
    if ((notQueued?.tasks ?? 0) > RECOUNTED_TASKS_MAX) return [];
    const newest = tx.prepare<{ id: number | null }>("select max(id) as id from line").get()?.id ?? 0;
    const agentQueue = tx
      .prepare<AgentQueue>(
        `select ${AGENT_QUEUE_COLUMNS} from line where id >= ? and waiting + inflight <= ? order by id limit 1`,
      )
      .get(Math.ceil(params.random * newest), RECOUNTED_TASKS_MAX);
    if (agentQueue === undefined) return [];
    const counted = tx
      .prepare<AgentQueueCount>(`${COUNT_AGENT_QUEUES} where id = ?`)
      .get(agentQueue.id) as AgentQueueCount;
    const faults = agentQueueFaults(agentQueue, counted);
    if (faults.length > 0) mend(tx, agentQueue, counted);
    return [...faults, ...recountTenant(tx, agentQueue, { anyway: faults.length > 0 })];
  });
}

interface AgentQueueCount {
  readonly waiting: number;
  readonly ready: number;
  readonly inflight: number;
  readonly head_rank: number | null;
  readonly head_seq: number | null;
}

/** Tasks that wait without being queued. */
const NOT_QUEUED = "state in ('waiting_dependency', 'delayed')";

const COUNT_AGENT_QUEUES = `
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
         ${headOfAgentQueue("head_rank", "head_seq")}
    from line`;

/** The rank and number of the first ready task of a row of `line`, as columns of these names. */
export function headOfAgentQueue(rank: string, seq: string): string {
  return `(select rank from ready where line = id order by rank, task_seq limit 1) as ${rank},
          (select task_seq from ready where line = id order by rank, task_seq limit 1) as ${seq}`;
}

function agentQueueFaults(agentQueue: AgentQueue, counted: AgentQueueCount): CounterFault[] {
  return (["waiting", "ready", "inflight", "head_rank", "head_seq"] as const).flatMap((column) =>
    compare(
      `line ${agentQueue.lane}/${agentQueue.tenant}/${agentQueue.agent} ${column}`,
      agentQueue[column],
      counted[column],
    ),
  );
}

function mend(tx: Transaction, agentQueue: AgentQueue, counted: AgentQueueCount): void {
  tx.prepare(
    `update lane set waiting = waiting + @waiting, inflight = inflight + @inflight,
                     exempt = exempt + iif(exists (select 1 from tenant where id = @tenant and disabled = 1), @waiting, 0)
      where name = @lane`,
  ).run({
    waiting: counted.waiting - agentQueue.waiting,
    inflight: counted.inflight - agentQueue.inflight,
    tenant: agentQueue.tenant,
    lane: agentQueue.lane,
  });
  tx.prepare(
    `update line set waiting = @waiting, ready = @ready, inflight = @inflight, head_rank = @head_rank,
                     head_seq = @head_seq, room = 0, startable = 0
      where id = @id`,
  ).run({ ...counted, id: agentQueue.id });
  refreshAgentQueues(tx, "tenant = ? and agent = ?", [agentQueue.tenant, agentQueue.agent]);
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
    .prepare<TenantQueue & { startable: 0 | 1 }>(
      `select ${TENANT_AGENT_QUEUE_COLUMNS}, startable from tenant_line where ${condition}`,
    )
    .all(...values)
    .flatMap((tenantQueue) => {
      const counted = countTenant(db, tenantQueue);
      const name = `tenant ${tenantQueue.lane}/${tenantQueue.tenant}`;
      return [
        ...COUNTED.flatMap((column) => compare(`${name} ${column}`, tenantQueue[column], counted[column])),
        ...compare(`${name} startable`, tenantQueue.startable, ledger.tenants.room(tenantQueue) > 0 ? 1 : 0),
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
  { tenant, lane }: AgentQueue,
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
  tx.db.agentQueues.clear();
  return faults;
}

export function compare(counter: string, stored: number | null, counted: number | null): CounterFault[] {
  return stored === counted ? [] : [{ counter, stored, counted }];
}
