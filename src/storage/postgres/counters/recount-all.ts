import type { CounterFault, RecountParams } from "../../storage.ts";
import { TaskCounts } from "../../task-counts.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { maxOf } from "../sessions/settle-sessions.ts";
import { type FaultRow, toFault } from "./recount.ts";
import { recountStored } from "./stored-bytes.ts";

/** Rows per statement. Each statement has its own snapshot, and a long one keeps vacuum from cleaning up. */
const SLICE_ROWS = 10_000;
/** Counters that one statement compares or recounts. */
const SLICE_COUNTERS = 500;
/** With more tasks than this, tallies are not counted in one statement. */
const EXACT_TALLY_MAX = 2_000_000;

/**
 * Counts everything in slices and changes nothing. Tasks change between the slices, so a counter that differs is only suspected.
 * One statement then recounts it with its rows, in one snapshot.
 */
export function recountAll(db: PostgresDatabase, params: RecountParams = {}): Promise<CounterFault[]> {
  return new Recount(db, params).run();
}

class Recount {
  readonly #db: PostgresDatabase;
  readonly #params: RecountParams;
  readonly #faults: CounterFault[] = [];
  readonly #counts = new TaskCounts();
  readonly #limit: number;
  readonly #counters: number;
  #rows = 0;
  #rowsTotal = 0;

  constructor(db: PostgresDatabase, params: RecountParams) {
    this.#db = db;
    this.#params = params;
    this.#limit = params.limit ?? SLICE_ROWS;
    this.#counters = Math.min(this.#limit, SLICE_COUNTERS);
  }

  async run(): Promise<CounterFault[]> {
    const before = await this.#readTally();
    this.#rowsTotal = before.tally.reduce((sum, { tasks }) => sum + tasks, 0);
    await this.#countTasks();
    await this.#checkTally(before);
    await this.#checkLines();
    await this.#checkBatches();
    for (const rows of ROW_CHECKS) await this.#checkRows(rows);
    for (const page of PAGE_CHECKS) await this.#checkPages(page);
    for (const text of WHOLE_CHECKS) {
      this.#found(await this.#query<FaultRow>(text, []));
      await this.#sliceDone(1);
    }
    const onSlice = (tasks: number) => this.#sliceDone(tasks);
    this.#faults.push(...(await recountStored(this.#db, { limit: this.#limit, onSlice })));
    return this.#faults;
  }

  async #countTasks(): Promise<void> {
    const places = { queued: 0, placed: 0 };
    for (let from = 0, more = true; more; ) {
      const groups = await this.#query<GroupRow>(COUNT_TASKS, [from, this.#limit]);
      let rows = 0;
      let upTo = from;
      for (const group of groups) {
        const tasks = Number(group.tasks);
        this.#counts.add({ ...group, line: Number(group.line), session: null, inSession: false, tasks });
        rows += tasks;
        upTo = Math.max(upTo, Number(group.last_seq));
      }
      const [found] = await this.#query<{ queued: string; placed: string }>(COUNT_PLACES, [from, upTo]);
      places.queued += Number(found?.queued ?? 0);
      places.placed += Number(found?.placed ?? 0);
      from = upTo;
      more = rows === this.#limit;
      await this.#sliceDone(rows);
    }
    this.#compare("queued tasks that are ready, held or parked", places.placed, places.queued);
  }

  async #checkTally(before: TallyReading): Promise<void> {
    const after = await this.#readTally();
    const stored = new Map(after.tally.map((row) => [tallyKey(row), row]));
    const all = [...stored.values()];
    for (const counted of this.#counts.tally())
      if (!stored.has(tallyKey(counted))) all.push({ ...counted, tasks: 0 });
    const suspects = all.filter(({ tenant, state, tasks }) => tasks !== this.#counts.inState(tenant, state));
    if (suspects.length === 0) return;
    if (this.#rowsTotal <= EXACT_TALLY_MAX) {
      const rows = suspects.map(({ tenant, state }) => ({ tenant, state }));
      this.#found(await this.#query<FaultRow>(RECOUNT_TALLIES, [JSON.stringify(rows)]));
      return;
    }
    // Too many tasks to count in one snapshot. A tally is wrong if it is off by more than can have changed meanwhile.
    const slack = Math.max(after.lastEvent - before.lastEvent, 0) * 2;
    const earlier = new Map(before.tally.map((row) => [tallyKey(row), row.tasks]));
    for (const row of suspects) {
      const { tenant, state, tasks } = row;
      const counted = this.#counts.inState(tenant, state);
      const then = earlier.get(tallyKey(row)) ?? 0;
      if (counted < Math.min(then, tasks) - slack || counted > Math.max(then, tasks) + slack)
        this.#compare(`tally ${tenant} ${state}`, tasks, counted);
    }
  }

  async #checkLines(): Promise<void> {
    const held = new Map(
      (await this.#query<HeldRow>(COUNT_HELD, [])).map((row) => [Number(row.line), row] as const),
    );
    let suspects: number[] = [];
    const recheck = async () => {
      if (suspects.length > 0) this.#found(await this.#query<FaultRow>(RECOUNT_LINES, [suspects]));
      suspects = [];
    };
    for (let after = 0, more = true; more; ) {
      const page = await this.#query<LineRow>(READ_LINES, [after, this.#counters]);
      for (const line of page) {
        after = Number(line.id);
        if (line.suspect || !this.#isAsCounted(line, held.get(after))) suspects.push(after);
      }
      more = page.length === this.#counters;
      await recheck();
      await this.#sliceDone(page.length);
    }
  }

  #isAsCounted(line: LineRow, held: HeldRow | undefined): boolean {
    const { early, parked, queued, exempt } = this.#counts.ofLine(Number(line.id));
    const inflight = Number(held?.tasks ?? 0);
    const ready = queued - inflight;
    return (
      line.inflight === inflight &&
      line.ready === ready &&
      line.parked === parked &&
      line.waiting === ready + early + parked &&
      line.exempt === exempt - Number(held?.exempt ?? 0)
    );
  }

  async #checkBatches(): Promise<void> {
    for (let after = "", more = true; more; ) {
      const page = await this.#query<BatchRow>(READ_BATCHES, [after, this.#counters]);
      const suspects = page.filter((batch) => !this.#isBatchAsCounted(batch)).map(({ id }) => id);
      if (suspects.length > 0) this.#found(await this.#query<FaultRow>(RECOUNT_BATCHES, [suspects]));
      after = page.at(-1)?.id ?? after;
      more = page.length === this.#counters;
      await this.#sliceDone(page.length);
    }
  }

  #isBatchAsCounted({ id, active, open, parallelism, completed }: BatchRow): boolean {
    const counted = this.#counts.ofBatch(id);
    const hasRoom = parallelism !== null && active < parallelism;
    return (
      active === counted.queued &&
      open === counted.open &&
      !(hasRoom && counted.parked > 0) &&
      (completed || open > 0)
    );
  }

  /** Checks rows that must agree with each other, a range at a time. */
  async #checkRows({ name, text, first }: RowCheck): Promise<void> {
    let stored = 0;
    let counted = 0;
    for (let key: readonly string[] | null = first; key !== null; ) {
      const [page]: RowsChecked[] = await this.#query(text, [...key, this.#limit]);
      const rows: number = Number(page?.rows ?? 0);
      counted += rows;
      stored += Number(page?.right_ones ?? 0);
      key = rows < this.#limit ? null : (page?.last_key?.flat() ?? null);
      await this.#sliceDone(rows);
    }
    this.#compare(name, stored, counted);
  }

  /** Checks counters that cover few rows each, a page at a time. */
  async #checkPages({ ids, faults }: PageCheck): Promise<void> {
    for (let after = "0", more = true; more; ) {
      const page = await this.#query<{ id: string }>(ids, [after, this.#counters]);
      if (page.length > 0) this.#found(await this.#query<FaultRow>(faults, [page.map(({ id }) => id)]));
      after = page.at(-1)?.id ?? after;
      more = page.length === this.#counters;
      await this.#sliceDone(page.length);
    }
  }

  async #readTally(): Promise<TallyReading> {
    const rows = await this.#query<{ tenant: string; state: string; tasks: string; last_event: string }>(
      `select tenant, state, tasks, (select last_value from event_seq) as last_event from tally`,
      [],
    );
    return {
      tally: rows.map(({ tenant, state, tasks }) => ({ tenant, state, tasks: Number(tasks) })),
      lastEvent: Number(rows[0]?.last_event ?? 0),
    };
  }

  #query<Row extends object>(text: string, values: readonly unknown[]): Promise<Row[]> {
    return this.#db.read<Row>({ text, values });
  }

  #found(rows: readonly FaultRow[]): void {
    this.#faults.push(...rows.map(toFault));
  }

  #compare(counter: string, stored: number, counted: number): void {
    if (stored !== counted) this.#faults.push({ counter, stored, counted });
  }

  async #sliceDone(rows: number): Promise<void> {
    this.#rows += rows;
    this.#rowsTotal = Math.max(this.#rowsTotal, this.#rows);
    await this.#params.onSlice?.({ rows: this.#rows, rowsTotal: this.#rowsTotal });
  }
}

interface GroupRow {
  readonly line: string;
  readonly tenant: string;
  readonly state: string;
  readonly ended: boolean;
  readonly parked: boolean;
  readonly exempt: boolean;
  readonly isMessage: boolean;
  readonly batch: string | null;
  readonly tasks: string;
  readonly last_seq: string;
}

interface TallyRow {
  readonly tenant: string;
  readonly state: string;
  readonly tasks: number;
}

interface TallyReading {
  readonly tally: readonly TallyRow[];
  readonly lastEvent: number;
}

function tallyKey({ tenant, state }: { tenant: string; state: string }): string {
  return JSON.stringify([tenant, state]);
}

interface HeldRow {
  readonly line: string;
  readonly tasks: string;
  readonly exempt: string;
}

interface LineRow {
  readonly id: string;
  readonly waiting: number;
  readonly exempt: number;
  readonly parked: number;
  readonly ready: number;
  readonly inflight: number;
  readonly suspect: boolean;
}

interface BatchRow {
  readonly id: string;
  readonly active: number;
  readonly open: number;
  readonly parallelism: number | null;
  readonly completed: boolean;
}

interface RowCheck {
  readonly name: string;
  /** Given the last key and a number of rows: how many it read, how many are right, and the key of the last. */
  readonly text: string;
  readonly first: readonly string[];
}

interface RowsChecked {
  readonly rows: string;
  readonly right_ones: string;
  /** Nested where it comes from `array_agg` of arrays. */
  readonly last_key: readonly (string | readonly string[])[] | null;
}

interface PageCheck {
  /** Given the last id and a limit: the ids after it. */
  readonly ids: string;
  /** Given ids: their faults, in one snapshot. */
  readonly faults: string;
}

const PARKED_TURN = "left join turn u on u.session = t.session and u.stage = 'parked' and u.place = t.place";

const COUNT_TASKS = `
select t.line, t.tenant, t.resting_state as state, t.completed_at is not null as ended,
       t.parked is not null or u.place is not null as parked, t.origin is not null as exempt,
       coalesce(t.origin = 'message', false) as "isMessage", case when t.completed_at is null then t.batch end as batch,
       count(*) as tasks, max(t.seq) as last_seq
  from (select seq, line, tenant, resting_state, completed_at, parked, origin, batch, session, place
          from task where seq > $1 order by seq limit $2) t
  ${PARKED_TURN}
 group by 1, 2, 3, 4, 5, 6, 7, 8`;

/** A queued task is exactly one of these: ready, parked, or held by an attempt. */
const COUNT_PLACES = `
select count(*) as queued,
       coalesce(sum((t.parked is not null)::integer + (u.place is not null)::integer + (l.task_seq is not null)::integer
                  + (r.task_seq is not null)::integer), 0) as placed
  from task t
  ${PARKED_TURN}
  left join lease l on l.task_seq = t.seq
  left join ready r on r.line = t.line and r.rank = t.rank and r.task_seq = t.seq
 where t.seq > $1 and t.seq <= $2 and t.resting_state = 'queued'`;

const RECOUNT_TALLIES = `
select 'tally ' || g.tenant || ' ' || g.state as counter, coalesce(a.tasks, 0) as stored, coalesce(c.tasks, 0) as counted
  from json_to_recordset($1) g(tenant text, state text)
  left join tally a on a.tenant = g.tenant and a.state = g.state
  left join (select tenant, resting_state, count(*) as tasks from task group by tenant, resting_state) c
         on c.tenant = g.tenant and c.resting_state = g.state
 where coalesce(a.tasks, 0) <> coalesce(c.tasks, 0)`;

const COUNT_HELD = `
select l.line, count(*) as tasks, count(t.origin) as exempt
  from lease l join task t on t.seq = l.task_seq group by l.line`;

/** An agent queue is suspect if a column contradicts its other columns or its first ready task. */
const READ_LINES = `
select n.id, n.waiting, n.exempt, n.parked, n.ready, n.inflight, c.wrong > 0 as suspect
  from (select * from line where id > $1 order by id limit $2) n
 cross join lateral (
   select count(*) filter (where stored is distinct from counted) as wrong from count_line_flags(array[n.id])) c
 order by n.id`;

const RECOUNT_LINES = `
select name || ' ' || column_name as counter, stored, counted
  from count_lines($1) where stored is distinct from counted`;

const READ_BATCHES = `
select id, active, open, parallelism, completed_at is not null as completed
  from batch where id > $1 order by id limit $2`;

const RECOUNT_BATCHES = `
select 'batch ' || b.id || ' ' || c.name as counter, c.stored, c.counted
  from batch b
  left join (select t.batch, count(*) filter (where t.resting_state = 'queued' and t.parked is null and u.place is null) as active,
                    count(*) filter (where t.completed_at is null) as open,
                    count(*) filter (where t.parked = 'batch') as parked
               from task t ${PARKED_TURN}
              where t.batch = any ($1) group by t.batch) t on t.batch = b.id
 cross join lateral (values
   ('active', b.active, coalesce(t.active, 0)),
   ('open', b.open, coalesce(t.open, 0)),
   ('parked beside room', case when b.active < b.parallelism then t.parked else 0 end, 0),
   ('over and untold', case when b.completed_at is null and t.open = 0 then 1 else 0 end, 0)) c(name, stored, counted)
 where b.id = any ($1) and c.stored <> c.counted`;

/** Whether `u` is the turn that task `t` should have in its session. */
const IS_RIGHT_TURN = `
  coalesce(u.is_message = coalesce(t.origin = 'message', false) and case u.stage
             when 'early' then t.resting_state in ('waiting_dependency', 'delayed')
             when 'parked' then t.resting_state = 'queued' and t.parked is null
             else t.resting_state in ('queued', 'delayed') end, false)`;

/** Whether task `t` has its concurrency key, where it has one. */
const HAS_KEY = `(t.concurrency_key is null or exists (
    select 1 from key_hold h where h.tenant = t.tenant and h.key = t.concurrency_key and h.task_seq = t.seq))`;

const ROW_CHECKS: readonly RowCheck[] = [
  {
    name: "ready entries of queued tasks",
    first: ["-1", "0", "0"],
    text: `
select count(*) as rows, count(t.seq) as right_ones,
       (array_agg(array[r.line::text, r.rank::text, r.task_seq::text] order by r.line desc, r.rank desc, r.task_seq desc))[1:1]
         as last_key
  from (select * from ready where (line, rank, task_seq) > ($1, $2, $3) order by line, rank, task_seq limit $4) r
  left join task t on t.seq = r.task_seq and t.line = r.line and t.rank = r.rank and t.resting_state = 'queued'
   and t.parked is null`,
  },
  {
    name: "tasks of sessions that have their turn",
    first: ["0"],
    text: `
select count(*) as rows, count(*) filter (where t.session is null or t.completed_at is not null or ${IS_RIGHT_TURN}) as right_ones,
       array[max(t.seq)::text] as last_key
  from (select * from task where seq > $1 order by seq limit $2) t
  left join turn u on u.task_seq = t.seq and u.session = t.session and u.place = t.place`,
  },
  {
    name: "concurrency keys of tasks that are ready or in flight",
    first: ["", ""],
    text: `
select count(*) as rows, count(t.seq) as right_ones,
       (array_agg(array[h.tenant, h.key] order by h.tenant desc, h.key desc))[1:1] as last_key
  from (select * from key_hold where (tenant, key) > ($1, $2) order by tenant, key limit $3) h
  left join task t on t.seq = h.task_seq and t.resting_state = 'queued' and t.parked is null and t.tenant = h.tenant
   and t.concurrency_key = h.key
   and (exists (select 1 from ready r where r.line = t.line and r.rank = t.rank and r.task_seq = t.seq)
        or exists (select 1 from lease l where l.task_seq = t.seq))`,
  },
  {
    name: "ready tasks that have their concurrency key",
    first: ["-1", "0", "0"],
    text: `
select count(*) as rows, count(*) filter (where t.seq is null or ${HAS_KEY}) as right_ones,
       (array_agg(array[r.line::text, r.rank::text, r.task_seq::text] order by r.line desc, r.rank desc, r.task_seq desc))[1:1]
         as last_key
  from (select * from ready where (line, rank, task_seq) > ($1, $2, $3) order by line, rank, task_seq limit $4) r
  left join task t on t.seq = r.task_seq`,
  },
  {
    name: "tasks that wait for a concurrency key that another has",
    first: ["", "", "-9223372036854775808", "0"],
    text: `
select count(*) as rows,
       count(*) filter (where h.task_seq is not null and (h.contested or o.line = t.line)) as right_ones,
       (array_agg(array[t.tenant, t.concurrency_key, t.rank::text, t.seq::text]
                  order by t.tenant desc, t.concurrency_key desc, t.rank desc, t.seq desc))[1:1] as last_key
  from (select * from task
         where parked = 'key' and (tenant, concurrency_key, rank, seq) > ($1, $2, $3, $4)
         order by tenant, concurrency_key, rank, seq limit $5) t
  left join key_hold h on h.tenant = t.tenant and h.key = t.concurrency_key
  left join task o on o.seq = h.task_seq`,
  },
  {
    name: "turns of tasks",
    first: ["-1", "", "0"],
    text: `
select count(*) as rows, count(*) filter (where t.completed_at is null and ${IS_RIGHT_TURN}) as right_ones,
       (array_agg(array[u.session::text, u.stage, u.place::text] order by u.session desc, u.stage desc, u.place desc))[1:1]
         as last_key
  from (select * from turn where (session, stage, place) > ($1, $2, $3) order by session, stage, place limit $4) u
  left join task t on t.seq = u.task_seq and t.session = u.session and t.place = u.place`,
  },
];

const PAGE_CHECKS: readonly PageCheck[] = [
  {
    ids: "select id from tenant_line where id > $1 order by id limit $2",
    faults: `
select name || ' ' || column_name as counter, stored, counted from count_tenants($1) where stored is distinct from counted`,
  },
  {
    ids: "select id from session where id > $1 order by id limit $2",
    faults: `
select 'session ' || s.tenant || '/' || s.key || ' ' || c.name as counter, c.stored, c.counted
  from session s
  left join (select session, count(*) filter (where stage = 'in') as active, count(*) filter (where stage = 'parked') as parked,
                    count(*) as open, count(*) filter (where is_message) as messages, max(place) as last_place,
                    min(place) filter (where stage = 'parked') as first_parked
               from turn where session = any ($1) group by session) u on u.session = s.id
 cross join lateral (values
   ('active', s.active, coalesce(u.active, 0)),
   ('parked', s.parked, coalesce(u.parked, 0)),
   ('open', s.open, coalesce(u.open, 0)),
   ('messages', s.messages, coalesce(u.messages, 0)),
   ('last_place', greatest(s.last_place, u.last_place), s.last_place),
   ('first_parked', least(s.first_parked, u.first_parked), s.first_parked),
   ('unsettled', case when s.parked > 0 and (s.active < ${maxOf("s")} or s.first_parked <= s.cutoff) then 1 else 0 end, 0))
   c(name, stored, counted)
 where s.id = any ($1) and c.stored <> c.counted`,
  },
  {
    ids: "select id from schedule where id > $1 order by id limit $2",
    faults: `
select 'schedule ' || s.id || ' open_runs' as counter, s.open_runs as stored, r.runs as counted
  from schedule s
 cross join lateral (select count(*) as runs from run r where r.schedule + 0 = s.id and r.status = 'running') r
 where s.id = any ($1) and s.open_runs <> r.runs`,
  },
];

/** These checks read agent queues or tasks in flight, never tasks that wait or have ended. */
const WHOLE_CHECKS: readonly string[] = [
  `
select 'attempts that have their concurrency key' as counter, count(*) filter (where ${HAS_KEY}) as stored, count(*) as counted
  from lease l join task t on t.seq = l.task_seq
having count(*) filter (where ${HAS_KEY}) <> count(*)`,
  `
select 'lane ' || l.name || ' ' || c.name as counter, c.stored, c.counted
  from lane l
  left join (select n.lane, sum(n.waiting) as waiting, sum(n.inflight) as inflight,
                    sum(case when t.disabled then n.waiting else n.exempt end) as exempt
               from line n left join tenant t on t.id = n.tenant group by n.lane) n on n.lane = l.name
  left join (select lane, count(*) as tenants from tenant_line group by lane) t on t.lane = l.name
 cross join lateral (values
   ('waiting', l.waiting, coalesce(n.waiting, 0)),
   ('exempt', l.exempt, coalesce(n.exempt, 0)),
   ('second_tenant', l.second_tenant::integer, (exists (select 1 from tenant where not disabled offset 1))::integer),
   ('tenants', l.tenants, coalesce(t.tenants, 0)),
   ('inflight', l.inflight, coalesce(n.inflight, 0))) c(name, stored, counted)
 where c.stored <> c.counted`,
  `
select 'tenants without lines, and lines without tenants' as counter, wrong as stored, 0 as counted
  from (select (select count(*) from tenant_line t where not exists (select 1 from line n where n.tenant = t.tenant))
             + (select count(*) from line n
                 where not exists (select 1 from tenant_line t where t.tenant = n.tenant and t.lane = n.lane)) as wrong) w
 where wrong > 0`,
  // A run is open as long as its task is.
  `
select 'runs whose tasks go' as counter, sum(c.right_ones) as stored, sum(c.runs) as counted
  from schedule s
 cross join lateral (
   select count(*) as runs, count(*) filter (where t.completed_at is null and t.seq is not null) as right_ones
     from run r left join task t on t.id = r.task_id where r.schedule + 0 = s.id and r.status = 'running') c
 where s.open_runs > 0 or c.runs > 0
having sum(c.right_ones) <> sum(c.runs)`,
  `
select 'sessions of leases' as counter, count(*) filter (where l.session is not distinct from t.session) as stored,
       count(*) as counted
  from lease l join task t on t.seq = l.task_seq
having count(*) filter (where l.session is not distinct from t.session) <> count(*)`,
  // A lease records whether its attempt may be pre-empted.
  `
select 'leases that may be taken' as counter, stored, counted
  from (select count(l.priority) as stored, count(*) filter (where t.priority > 0 and t.preemptions_left > 0) as counted,
               count(*) filter (where (l.priority is not null) <> (t.priority > 0 and t.preemptions_left > 0)
                                   or l.priority <> t.priority or l.lane <> n.lane or l.tenant <> t.tenant) as wrong
          from lease l join task t on t.seq = l.task_seq join line n on n.id = t.line) f
 where wrong > 0`,
];
