import type { CounterFault } from "../storage.ts";
import type { SqliteDatabase } from "./database.ts";
import { refreshLines } from "./lanes.ts";
import { Ledger, LINE_COLUMNS, type Line } from "./ledger.ts";
import { TENANT_LINE_COLUMNS, type TenantLine } from "./tenant-ledger.ts";

/** Counting more than this would hold up everybody else for what is a precaution. */
const RECOUNTED_TASKS_MAX = 10_000;

/** Recounts one line, and mends it and its lane if it is off. */
export async function recountOne(db: SqliteDatabase, params: { random: number }): Promise<CounterFault[]> {
  return db.write(() => {
    // What is stored is looked at, and written in several ways.
    db.lines.clear();
    const parked = db
      .prepare<{ tasks: number }>(`select sum(tasks) as tasks from tally where ${PARKED}`)
      .get();
    if ((parked?.tasks ?? 0) > RECOUNTED_TASKS_MAX) return [];
    const newest = db.prepare<{ id: number | null }>("select max(id) as id from line").get()?.id ?? 0;
    const line = db
      .prepare<Line>(
        `select ${LINE_COLUMNS} from line where id >= ? and waiting + inflight <= ? order by id limit 1`,
      )
      .get(Math.ceil(params.random * newest), RECOUNTED_TASKS_MAX);
    if (line === undefined) return [];
    const counted = db.prepare<LineCount>(`${COUNT_LINES} where id = ?`).get(line.id) as LineCount;
    const faults = lineFaults(line, counted);
    if (faults.length > 0) mend(db, line, counted);
    return [...faults, ...recountTenant(db, line, { anyway: faults.length > 0 })];
  });
}

/** Recounts everything and changes nothing. */
export async function recountAll(db: SqliteDatabase): Promise<CounterFault[]> {
  const lines = db.prepare<Line>(`select ${LINE_COLUMNS} from line order by id`).all();
  const counts = db.prepare<LineCount>(`${COUNT_LINES} order by id`).all();
  return [
    ...lines.flatMap((line, index) => lineFaults(line, counts[index] as LineCount)),
    ...taskFaults(db),
    ...flagFaults(db),
    ...laneFaults(db),
    ...tenantFaults(db, "true"),
    ...strayTenants(db),
    ...tallyFaults(db),
    ...batchFaults(db),
    ...sessionFaults(db),
    ...keyFaults(db),
    ...exemptFaults(db),
    ...scheduleFaults(db),
  ];
}

interface LineCount {
  readonly waiting: number;
  readonly ready: number;
  readonly inflight: number;
  readonly head_rank: number | null;
  readonly head_seq: number | null;
}

/** What waits without being ready. */
const PARKED = "state in ('waiting_dependency', 'delayed')";

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
         (select rank from ready where line = id order by rank, task_seq limit 1) as head_rank,
         (select task_seq from ready where line = id order by rank, task_seq limit 1) as head_seq
    from line`;

function lineFaults(line: Line, counted: LineCount): CounterFault[] {
  return (["waiting", "ready", "inflight", "head_rank", "head_seq"] as const).flatMap((column) =>
    compare(`line ${line.lane}/${line.tenant}/${line.agent} ${column}`, line[column], counted[column]),
  );
}

function mend(db: SqliteDatabase, line: Line, counted: LineCount): void {
  db.prepare("update lane set waiting = waiting + ?, inflight = inflight + ? where name = ?").run(
    counted.waiting - line.waiting,
    counted.inflight - line.inflight,
    line.lane,
  );
  db.prepare(
    `update line set waiting = @waiting, ready = @ready, inflight = @inflight, head_rank = @head_rank,
                     head_seq = @head_seq, room = 0, startable = 0
      where id = @id`,
  ).run({ ...counted, id: line.id });
  refreshLines(db, "tenant = ? and agent = ?", [line.tenant, line.agent]);
}

/** How many tasks a line has in all, and whether those that should be entered in `task_of_line` are. */
function taskFaults(db: SqliteDatabase): CounterFault[] {
  return db
    .prepare<{ id: number; stored: number; counted: number; entered: number; old: number }>(
      `with counted as materialized
              (select line, count(*) as tasks, sum(seq <= ?) as old from task group by line),
            entered as materialized
              (select x.line, count(*) as tasks from task_of_line x join task t on t.seq = x.task_seq group by x.line)
       select n.id, n.tasks as stored, coalesce(c.tasks, 0) as counted, coalesce(e.tasks, 0) as entered,
              coalesce(c.old, 0) as old
         from line n left join counted c on c.line = n.id left join entered e on e.line = n.id`,
    )
    .all(db.enteredUpTo)
    .flatMap(({ id, stored, counted, entered, old }) => [
      ...compare(`line ${id} tasks`, stored, counted),
      ...compare(`line ${id} tasks entered`, entered, old),
    ]);
}

function flagFaults(db: SqliteDatabase): CounterFault[] {
  const ledger = new Ledger(db);
  return db
    .prepare<Line & { startable: 0 | 1 }>(`select ${LINE_COLUMNS}, startable from line`)
    .all()
    .flatMap((line) => [
      ...compare(`line ${line.id} room`, line.room, ledger.room(line)),
      ...compare(`line ${line.id} startable`, line.startable, ledger.room(line) > 0 ? 1 : 0),
      ...compare(`line ${line.id} ahead`, line.ahead, ledger.isAhead(line) ? 1 : 0),
    ]);
}

function laneFaults(db: SqliteDatabase): CounterFault[] {
  return db
    .prepare<{
      name: string;
      waiting: number;
      inflight: number;
      line_waiting: number;
      line_inflight: number;
    }>(
      `select name, waiting, inflight,
              (select coalesce(sum(waiting), 0) from line where lane = name) as line_waiting,
              (select coalesce(sum(inflight), 0) from line where lane = name) as line_inflight
         from lane`,
    )
    .all()
    .flatMap((lane) => [
      ...compare(`lane ${lane.name} waiting`, lane.waiting, lane.line_waiting),
      ...compare(`lane ${lane.name} inflight`, lane.inflight, lane.line_inflight),
    ]);
}

interface TenantCount {
  readonly waiting: number;
  readonly exempt: number;
  readonly inflight: number;
  readonly supply: number;
  readonly urgent_lines: number;
}

const COUNTED = ["waiting", "exempt", "inflight", "supply", "urgent_lines"] as const;

/** Tenants against their lines, which are counted by themselves. */
function tenantFaults(db: SqliteDatabase, condition: string, values: readonly string[] = []): CounterFault[] {
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

/** Bounds that were copied, and tenants in lanes that they are not in or without a row where they are. */
function strayTenants(db: SqliteDatabase): CounterFault[] {
  const row = db
    .prepare<{ wrong: number }>(
      `select (select count(*) from tenant_line n left join tenant t on t.id = n.tenant
                where (n.max_queued, n.max_inflight, n.disabled) is not (t.max_queued, t.max_inflight, coalesce(t.disabled, 0)))
            + (select count(*) from tenant_line n where not exists (select 1 from line s where s.tenant = n.tenant))
            + (select count(*) from line s
                where not exists (select 1 from tenant_line n where n.tenant = s.tenant and n.lane = s.lane)) as wrong`,
    )
    .get();
  return compare("tenants that are not as their rows and lines say", row?.wrong ?? 0, 0);
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
 * Recounts the tenant of a line, and mends it if it is off; not one of so many agents that it would hold up the rest,
 * unless the line was mended.
 */
function recountTenant(
  db: SqliteDatabase,
  { tenant, lane }: Line,
  { anyway }: { anyway: boolean },
): CounterFault[] {
  const agents = db
    .prepare<{ lines: number }>(
      "select count(*) as lines from (select 1 from line where tenant = ? limit +?)",
    )
    .get(tenant, RECOUNTED_TASKS_MAX);
  if ((agents?.lines ?? 0) >= RECOUNTED_TASKS_MAX && !anyway) return [];
  const faults = tenantFaults(db, "tenant = ? and lane = ?", [tenant, lane]);
  if (faults.length === 0) return [];
  const ledger = new Ledger(db);
  Object.assign(ledger.tenants.of({ lane, tenant }), countTenant(db, { lane, tenant }));
  ledger.tenants.save({ limitsChanged: true });
  db.lines.clear();
  return faults;
}

/** Also finds a ready task that is not queued, and a queued one that is nowhere. */
function tallyFaults(db: SqliteDatabase): CounterFault[] {
  const tallies = db
    .prepare<{ tenant: string; state: string; stored: number; counted: number }>(
      `select tenant, state, sum(stored) as stored, sum(counted) as counted
         from (select tenant, state, tasks as stored, 0 as counted from tally
               union all select tenant, resting_state, 0, count(*) from task group by tenant, resting_state)
        group by tenant, state`,
    )
    .all();
  const places = db
    .prepare<{ queued: number; placed: number }>(
      `select (select count(*) from task where resting_state = 'queued') as queued,
              (select count(*) from ready r join task t on t.seq = r.task_seq and t.resting_state = 'queued')
                + (select count(*) from task where parked is not null)
                + (select count(*) from lease l join task t on t.seq = l.task_seq and t.resting_state = 'queued')
                as placed`,
    )
    .get();
  return [
    ...tallies.flatMap(({ tenant, state, stored, counted }) =>
      compare(`tally ${tenant} ${state}`, stored, counted),
    ),
    ...compare("queued tasks that are ready, parked or held", places?.placed ?? 0, places?.queued ?? 0),
  ];
}

function batchFaults(db: SqliteDatabase): CounterFault[] {
  return db
    .prepare<{ id: string; active: number; counted_active: number; open: number; counted_open: number }>(
      `select b.id, b.active, b.open,
              (select count(*) from task t
                where b.parallelism is not null and t.batch = b.id and t.resting_state = 'queued' and t.parked is null)
                as counted_active,
              (select count(*) from task t where t.batch = b.id and t.completed_at is null) as counted_open
         from batch b`,
    )
    .all()
    .flatMap(({ id, active, counted_active, open, counted_open }) => [
      ...compare(`batch ${id} active`, active, counted_active),
      ...compare(`batch ${id} open`, open, counted_open),
    ]);
}

function sessionFaults(db: SqliteDatabase): CounterFault[] {
  const waits = "t.session = s.id and t.completed_at is null and l.task_seq is null";
  const counted = `from task t left join lease l on l.task_seq = t.seq where ${waits}`;
  return db
    .prepare<Record<"id" | "active" | "queued" | "messages" | "in_it" | "waiting" | "sent", number>>(
      `select s.id, s.active, s.queued, s.messages,
              (select count(*) from task t where t.session = s.id and t.in_session = 1) as in_it,
              (select count(*) ${counted}) as waiting,
              (select count(*) ${counted} and t.origin = 'message') as sent
         from session s`,
    )
    .all()
    .flatMap(({ id, active, queued, messages, in_it, waiting, sent }) => [
      ...compare(`session ${id} active`, active, in_it),
      ...compare(`session ${id} queued`, queued, waiting),
      ...compare(`session ${id} messages`, messages, sent),
    ]);
}

/** Who has a key is ready or in flight, and alone; and nobody waits for a key that is free. */
function keyFaults(db: SqliteDatabase): CounterFault[] {
  const active = "t.resting_state = 'queued' and t.parked is null and t.concurrency_key is not null";
  const count = (what: string, from: string) => {
    const row = db.prepare<{ wrong: number }>(`select count(*) as wrong from ${from}`).get();
    return compare(`concurrency keys: ${what}`, row?.wrong ?? 0, 0);
  };
  return [
    ...count(
      "holders that are neither ready nor in flight with that key",
      `key_hold h left join task t on t.seq = h.task_seq and ${active}
        where (t.tenant, t.concurrency_key) is not (h.tenant, h.key)`,
    ),
    ...count(
      "tasks that are ready or in flight without having their key",
      `task t where ${active} and not exists (
         select 1 from key_hold h where h.tenant = t.tenant and h.key = t.concurrency_key and h.task_seq = t.seq)`,
    ),
    ...count(
      "tasks that wait for a key that is free, or that a claim does not look at",
      `task t left join key_hold h on h.tenant = t.tenant and h.key = t.concurrency_key
         left join task o on o.seq = h.task_seq
        where t.parked = 'key' and (h.key is null or (h.contested = 0 and o.line <> t.line))`,
    ),
    ...count(
      "leases that say another key than their task",
      "lease l join task t on t.seq = l.task_seq where l.concurrency_key is not t.concurrency_key",
    ),
  ];
}

/** Of the waiting, those that admission does not count. */
function exemptFaults(db: SqliteDatabase): CounterFault[] {
  const exempt = `
    select count(*) from task t left join lease l on l.task_seq = t.seq
     where t.completed_at is null and l.task_seq is null and t.origin <> 'task' and t.line`;
  return [
    ...db
      .prepare<{ id: number; exempt: number; counted: number }>(
        `select n.id, n.exempt, (${exempt} = n.id) as counted from line n`,
      )
      .all()
      .flatMap(({ id, exempt: stored, counted }) => compare(`line ${id} exempt`, stored, counted)),
    ...db
      .prepare<{ name: string; exempt: number; counted: number }>(
        `select a.name, a.exempt, (${exempt} in (select id from line where lane = a.name)) as counted from lane a`,
      )
      .all()
      .flatMap(({ name, exempt: stored, counted }) => compare(`lane ${name} exempt`, stored, counted)),
  ];
}

function compare(counter: string, stored: number | null, counted: number | null): CounterFault[] {
  return stored === counted ? [] : [{ counter, stored, counted }];
}

function scheduleFaults(db: SqliteDatabase): CounterFault[] {
  return db
    .prepare<{ id: number; stored: number; counted: number }>(
      `select s.id, s.open_runs as stored,
              (select count(*) from run r where r.schedule = s.id and r.status = 'running') as counted
         from schedule s`,
    )
    .all()
    .flatMap(({ id, stored, counted }) => compare(`schedule ${id} open_runs`, stored, counted));
}
