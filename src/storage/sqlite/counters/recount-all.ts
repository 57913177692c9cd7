import type { CounterFault, RecountParams } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { AGENT_QUEUE_COLUMNS, type AgentQueue, Ledger } from "./ledger.ts";
import { compare, headOfAgentQueue, tenantFaults } from "./recount.ts";
import { recountStored } from "./stored-bytes.ts";
import { TaskCensus } from "./task-census.ts";

/** Rows of one slice: a few milliseconds, during which nothing else runs in this thread. */
const SLICE_ROWS = 2_000;
/** Counters of one slice; each is compared with several numbers. */
const SLICE_COUNTERS = 200;

/** One recount at a time: they share a temporary table. */
const underWay = new WeakMap<SqliteDatabase, Promise<unknown>>();

/** Counts everything in slices and changes nothing. */
export async function recountAll(db: SqliteDatabase, params: RecountParams = {}): Promise<CounterFault[]> {
  const before = underWay.get(db);
  const recount = (async () => {
    await before?.catch(() => undefined);
    return new Recount(db, params).run();
  })();
  underWay.set(db, recount);
  return recount;
}

class Recount {
  readonly #db: SqliteDatabase;
  readonly #params: RecountParams;
  readonly #faults: CounterFault[] = [];
  readonly #census: TaskCensus;
  readonly #limit: number;
  readonly #counters: number;
  #rows = 0;
  #rowsTotal: number;

  constructor(db: SqliteDatabase, params: RecountParams) {
    this.#db = db;
    this.#params = params;
    this.#limit = params.limit ?? SLICE_ROWS;
    this.#counters = Math.min(this.#limit, SLICE_COUNTERS);
    this.#rowsTotal = estimateRows(db);
    this.#census = new TaskCensus(db);
  }

  /** Counts the tasks first. Then it compares each counter with these counts, both as of the same time. */
  async run(): Promise<CounterFault[]> {
    try {
      await this.#countTasks();
      await this.#checkReadySet();
      await this.#checkTasksOfLines();
      await this.#checkLines();
      await this.#checkLanes();
      await this.#checkTenants();
      await this.#checkTally();
      await this.#checkBatches();
      await this.#checkSessions();
      await this.#checkKeys();
      await this.#checkSchedules();
      await this.#checkStoredBytes();
      return this.#faults;
    } finally {
      this.#census.close();
    }
  }

  async #countTasks(): Promise<void> {
    const places = { queued: 0, placed: 0 };
    const entries = { old: 0, entered: 0, ofTenant: 0 };
    for (let more = true; more; ) {
      const from = this.#census.upTo;
      const rows = this.#census.advance(this.#limit);
      add(places, this.#placesOf(from, this.#census.upTo));
      add(entries, this.#entriesOf(from, this.#census.upTo));
      more = rows === this.#limit;
      await this.#sliceDone(rows);
    }
    this.#compare("queued tasks that are ready, parked or held", places.placed, places.queued);
    this.#compare("tasks entered by agent", entries.entered, entries.old);
    this.#compare("tasks entered by tenant", entries.ofTenant, entries.old);
  }

  /** A queued task is exactly one of these: ready, parked, or held by an attempt. */
  #placesOf(from: number, to: number): { queued: number; placed: number } {
    return this.#one(
      `select count(*) as queued,
              coalesce(sum((parked is not null)
                + exists (select 1 from ready r where r.line = t.line and r.rank = t.rank and r.task_seq = t.seq)
                + exists (select 1 from lease l where l.task_seq = t.seq)), 0) as placed
         from task t not indexed where resting_state = 'queued' and seq > ? and seq <= ?`,
      from,
      to,
    );
  }

  #entriesOf(from: number, to: number): { old: number; entered: number; ofTenant: number } {
    return this.#one(
      `select count(*) as old,
              coalesce(sum(exists (select 1 from task_of_line x where x.line = t.line and x.task_seq = t.seq)), 0) as entered,
              coalesce(sum(exists (select 1 from task_of_tenant y where y.tenant = t.tenant and y.task_seq = t.seq)), 0)
                as ofTenant
         from task t where seq > ? and seq <= ?`,
      from,
      Math.min(to, this.#db.enteredUpTo),
    );
  }

  /** Every entry of the ready set is a queued task. */
  async #checkReadySet(): Promise<void> {
    const found = { rows: 0, right: 0 };
    await this.#eachPage<{ line: number; rank: number; task_seq: number; right: 0 | 1 }>(
      this.#limit,
      `select r.line, r.rank, r.task_seq,
              exists (select 1 from task t where t.seq = r.task_seq and t.line = r.line and t.rank = r.rank
                         and t.resting_state = 'queued' and t.parked is null) as right
         from ready r where (r.line, r.rank, r.task_seq) > (?, ?, ?) order by r.line, r.rank, r.task_seq limit +?`,
      [-1, 0, 0],
      ({ line, rank, task_seq }) => [line, rank, task_seq],
      (page) => add(found, { rows: page.length, right: page.filter(({ right }) => right === 1).length }),
    );
    this.#compare("ready entries of queued tasks", found.rows, found.right);
  }

  /** No entry of `task_of_line` names the wrong agent queue. */
  async #checkTasksOfLines(): Promise<void> {
    let wrong = 0;
    await this.#eachPage<{ line: number; task_seq: number; wrong: 0 | 1 }>(
      this.#limit,
      `select x.line, x.task_seq,
              exists (select 1 from task t where t.seq = x.task_seq and t.line <> x.line) as wrong
         from task_of_line x where (x.line, x.task_seq) > (?, ?) order by x.line, x.task_seq limit +?`,
      [-1, 0],
      ({ line, task_seq }) => [line, task_seq],
      (page) => {
        wrong += page.filter((entry) => entry.wrong === 1).length;
      },
    );
    this.#compare("tasks entered for another agent", wrong, 0);
  }

  async #checkLines(): Promise<void> {
    let strays = 0;
    await this.#eachPage<
      AgentQueue & { startable: 0 | 1; counted_rank: number | null; counted_seq: number | null }
    >(
      this.#counters,
      `select ${AGENT_QUEUE_COLUMNS}, startable, ${headOfAgentQueue("counted_rank", "counted_seq")} from line where id > ? order by id limit +?`,
      [-1],
      ({ id }) => [id],
      (page) => {
        const held = this.#heldByLine();
        const ledger = new Ledger(this.#db);
        for (const agentQueue of page) {
          this.#checkLine(agentQueue, held, ledger);
          if (!this.#isTenantIn(agentQueue)) strays += 1;
        }
      },
    );
    this.#compare("agent queues whose tenant is not in their lane", strays, 0);
  }

  #checkLine(
    agentQueue: AgentQueue & { startable: 0 | 1; counted_rank: number | null; counted_seq: number | null },
    held: ReadonlyMap<number, Held>,
    ledger: Ledger,
  ): void {
    const name = `line ${agentQueue.lane}/${agentQueue.tenant}/${agentQueue.agent}`;
    const counted = this.#inLine(agentQueue.id, held);
    this.#compare(`${name} waiting`, agentQueue.waiting, counted.waiting);
    this.#compare(`${name} ready`, agentQueue.ready, counted.ready);
    this.#compare(`${name} inflight`, agentQueue.inflight, counted.inflight);
    this.#compare(`${name} exempt`, agentQueue.exempt, counted.exempt);
    this.#compare(`${name} tasks`, agentQueue.tasks, counted.tasks);
    this.#compare(`${name} head_rank`, agentQueue.head_rank, agentQueue.counted_rank);
    this.#compare(`${name} head_seq`, agentQueue.head_seq, agentQueue.counted_seq);
    const room = ledger.room(agentQueue);
    this.#compare(`${name} room`, agentQueue.room, room);
    this.#compare(`${name} startable`, agentQueue.startable, room > 0 ? 1 : 0);
    this.#compare(`${name} ahead`, agentQueue.ahead, ledger.isAhead(agentQueue) ? 1 : 0);
  }

  #inLine(id: number, held: ReadonlyMap<number, Held>) {
    const { tasks, early, parked, queued, exempt } = this.#census.counts.ofAgentQueue(id);
    const own = held.get(id) ?? NOTHING_HELD;
    const ready = queued - own.queued;
    return {
      tasks,
      ready,
      waiting: ready + early + parked,
      inflight: own.tasks,
      exempt: exempt - own.exempt,
    };
  }

  async #checkStoredBytes(): Promise<void> {
    const onSlice = (tasks: number) => this.#sliceDone(tasks);
    this.#faults.push(...(await recountStored(this.#db, { limit: this.#limit, onSlice })));
  }

  async #checkLanes(): Promise<void> {
    const lanes = this.#sumsByLane();
    const second = this.#db.prepare("select 1 from tenant where disabled = 0 limit 1 offset 1").get();
    for (const lane of this.#db
      .prepare<{ name: string; waiting: number; inflight: number; exempt: number; second_tenant: 0 | 1 }>(
        "select * from lane",
      )
      .all()) {
      const counted = lanes.get(lane.name) ?? NO_SUM;
      this.#compare(`lane ${lane.name} waiting`, lane.waiting, counted.waiting);
      this.#compare(`lane ${lane.name} inflight`, lane.inflight, counted.inflight);
      this.#compare(`lane ${lane.name} exempt`, lane.exempt, counted.exempt);
      this.#compare(`lane ${lane.name} second_tenant`, lane.second_tenant, second === undefined ? 0 : 1);
    }
    await this.#sliceDone(lanes.size);
  }

  /** Compares tenants with their agent queues, one tenant in one lane per slice, since it may have many queues. */
  async #checkTenants(): Promise<void> {
    let strays = 0;
    await this.#eachPage<{ id: number; stray: 0 | 1 }>(
      1,
      `select n.id,
              (n.max_queued, n.max_inflight, n.lane_max, n.disabled)
                is not (t.max_queued, t.max_inflight, l.per_tenant, coalesce(t.disabled, 0))
                or not exists (select 1 from line s where s.tenant = n.tenant) as stray
         from tenant_line n left join tenant t on t.id = n.tenant left join lane l on l.name = n.lane and l.second_tenant = 1
        where n.id > ? order by n.id limit +?`,
      [-1],
      ({ id }) => [id],
      (page) => {
        for (const { id, stray } of page) {
          strays += stray;
          this.#faults.push(...tenantFaults(this.#db, "id = ?", [id]));
        }
      },
    );
    this.#compare("tenants that are not as their rows and lines say", strays, 0);
  }

  async #checkTally(): Promise<void> {
    const { counts } = this.#census;
    this.#catchUp();
    const stored = this.#db
      .prepare<{ tenant: string; state: string; tasks: number }>("select tenant, state, tasks from tally")
      .all();
    const known = new Set<string>();
    for (const { tenant, state, tasks } of stored) {
      known.add(JSON.stringify([tenant, state]));
      this.#compare(`tally ${tenant} ${state}`, tasks, counts.inState(tenant, state));
    }
    for (const { tenant, state, tasks } of counts.tally())
      if (!known.has(JSON.stringify([tenant, state]))) this.#compare(`tally ${tenant} ${state}`, 0, tasks);
    await this.#sliceDone(stored.length);
  }

  async #checkBatches(): Promise<void> {
    const { counts } = this.#census;
    await this.#eachPage<{ id: string; active: number; open: number; parallelism: number | null }>(
      this.#counters,
      "select id, active, open, parallelism from batch where id > ? order by id limit +?",
      [""],
      ({ id }) => [id],
      (page) => {
        for (const { id, active, open, parallelism } of page) {
          const counted = counts.ofBatch(id);
          this.#compare(`batch ${id} active`, active, parallelism === null ? 0 : counted.queued);
          this.#compare(`batch ${id} open`, open, counted.open);
        }
      },
    );
  }

  async #checkSessions(): Promise<void> {
    const { counts } = this.#census;
    await this.#eachPage<{ id: number; active: number; queued: number; messages: number }>(
      this.#counters,
      "select id, active, queued, messages from session where id > ? order by id limit +?",
      [-1],
      ({ id }) => [id],
      (page) => {
        const held = this.#heldBySession();
        for (const { id, active, queued, messages } of page) {
          const counted = counts.ofSession(id);
          const own = held.get(id) ?? NO_MESSAGES_HELD;
          this.#compare(`session ${id} active`, active, counted.inside);
          this.#compare(`session ${id} queued`, queued, counted.open - own.tasks);
          this.#compare(`session ${id} messages`, messages, counted.messages - own.messages);
        }
      },
    );
  }

  /**
   * The holder of a key is ready or in flight, and it is the only one. No task waits for a key that is free, or for one that
   * claims do not check.
   */
  async #checkKeys(): Promise<void> {
    const active = "t.resting_state = 'queued' and t.parked is null";
    const hasKey = `(t.concurrency_key is null or exists (
      select 1 from key_hold h where h.tenant = t.tenant and h.key = t.concurrency_key and h.task_seq = t.seq))`;
    await this.#checkRows<{ tenant: string; key: string }>(
      "concurrency keys of tasks that are ready or in flight",
      `select h.tenant, h.key, exists (
                select 1 from task t where t.seq = h.task_seq and ${active} and t.tenant = h.tenant and t.concurrency_key = h.key)
                as right
         from key_hold h where (h.tenant, h.key) > (?, ?) order by h.tenant, h.key limit +?`,
      ["", ""],
      ({ tenant, key }) => [tenant, key],
    );
    await this.#checkRows<{ line: number; rank: number; task_seq: number }>(
      "ready tasks that have their concurrency key",
      `select r.line, r.rank, r.task_seq, coalesce((select ${hasKey} from task t where t.seq = r.task_seq), 1) as right
         from ready r where (r.line, r.rank, r.task_seq) > (?, ?, ?) order by r.line, r.rank, r.task_seq limit +?`,
      [-1, 0, 0],
      ({ line, rank, task_seq: seq }) => [line, rank, seq],
    );
    await this.#checkRows<{ task_seq: number }>(
      "attempts that have their concurrency key",
      `select l.task_seq, l.concurrency_key is t.concurrency_key and ${hasKey} as right
         from lease l join task t on t.seq = l.task_seq where l.task_seq > ? order by l.task_seq limit +?`,
      [-1],
      ({ task_seq: seq }) => [seq],
    );
    await this.#checkRows<{ tenant: string; key: string; rank: number; seq: number }>(
      "tasks that wait for a concurrency key that another has",
      `select t.tenant, t.concurrency_key as key, t.rank, t.seq,
              coalesce(h.contested = 1 or o.line = t.line, 0) as right
         from task t left join key_hold h on h.tenant = t.tenant and h.key = t.concurrency_key
         left join task o on o.seq = h.task_seq
        where t.parked = 'key' and (t.tenant, t.concurrency_key, t.rank, t.seq) > (?, ?, ?, ?)
        order by t.tenant, t.concurrency_key, t.rank, t.seq limit +?`,
      ["", "", Number.MIN_SAFE_INTEGER, 0],
      ({ tenant, key, rank, seq }) => [tenant, key, rank, seq],
    );
  }

  /** Checks rows for consistency with other rows, a page at a time. */
  async #checkRows<Row>(
    name: string,
    sql: string,
    first: readonly (number | string)[],
    keyOf: (row: Row) => readonly (number | string)[],
  ): Promise<void> {
    const found = { rows: 0, right: 0 };
    await this.#eachPage<Row & { right: 0 | 1 }>(this.#limit, sql, first, keyOf, (page) => {
      for (const { right } of page) add(found, { rows: 1, right });
    });
    this.#compare(name, found.right, found.rows);
  }

  async #checkSchedules(): Promise<void> {
    await this.#eachPage<{ id: number; open_runs: number; counted: number }>(
      this.#counters,
      `select id, open_runs,
              (select count(*) from run r where r.schedule = s.id and r.status = 'running') as counted
         from schedule s where id > ? order by id limit +?`,
      [-1],
      ({ id }) => [id],
      (page) => {
        for (const { id, open_runs, counted } of page)
          this.#compare(`schedule ${id} open_runs`, open_runs, counted);
      },
    );
  }

  /** Reads a table page by page. For each page it first brings the counts of tasks up to date. */
  async #eachPage<Row>(
    limit: number,
    sql: string,
    first: readonly (number | string)[],
    keyOf: (row: Row) => readonly (number | string)[],
    look: (page: readonly Row[]) => void,
  ): Promise<void> {
    for (let key: readonly (number | string)[] | null = first; key !== null; ) {
      this.#catchUp();
      const page: Row[] = this.#db.prepare<Row>(sql).all(...key, limit);
      look(page);
      const last = page.at(-1);
      key = last === undefined || page.length < limit ? null : keyOf(last);
      await this.#sliceDone(page.length);
    }
  }

  /** Counts what was added and changed since the last slice. */
  #catchUp(): void {
    while (this.#census.advance(this.#limit) === this.#limit);
  }

  #heldByLine(): Map<number, Held> {
    const rows = this.#db
      .prepare<Held & { line: number }>(
        `select l.line, count(*) as tasks, sum(t.resting_state = 'queued' and t.parked is null) as queued,
                sum(t.completed_at is null and t.origin <> 'task') as exempt
           from lease l join task t on t.seq = l.task_seq group by l.line`,
      )
      .all();
    return new Map(rows.map((row) => [row.line, row]));
  }

  #heldBySession(): Map<number, { tasks: number; messages: number }> {
    const rows = this.#db
      .prepare<{ session: number; tasks: number; messages: number }>(
        `select t.session, count(*) as tasks, sum(t.origin = 'message') as messages
           from lease l join task t on t.seq = l.task_seq
          where t.session is not null and t.completed_at is null group by t.session`,
      )
      .all();
    return new Map(rows.map((row) => [row.session, row]));
  }

  #isTenantIn({ tenant, lane }: AgentQueue): boolean {
    const row = this.#db.prepare("select 1 from tenant_line where tenant = ? and lane = ?").get(tenant, lane);
    return row !== undefined;
  }

  #sumsByLane(): Map<string, Sum> {
    this.#catchUp();
    const held = this.#heldByLine();
    // Read again: the id of an agent queue that was deleted meanwhile may belong to a new one, in another lane.
    const agentQueues = this.#db
      .prepare<{ id: number; lane: string; disabled: 0 | 1 }>(
        `select id, lane, exists (select 1 from tenant t where t.id = line.tenant and t.disabled = 1) as disabled
           from line`,
      )
      .all();
    const sums = new Map<string, Sum>();
    for (const { id, lane, disabled } of agentQueues) {
      const counted = this.#inLine(id, held);
      const sum = sums.get(lane) ?? { ...NO_SUM };
      sum.waiting += counted.waiting;
      sum.inflight += counted.inflight;
      sum.exempt += disabled === 1 ? counted.waiting : counted.exempt;
      sums.set(lane, sum);
    }
    return sums;
  }

  #one<Row>(sql: string, ...values: number[]): Row {
    return this.#db.prepare<Row>(sql).get(...values) as Row;
  }

  #compare(counter: string, stored: number | null, counted: number | null): void {
    this.#faults.push(...compare(counter, stored, counted));
  }

  async #sliceDone(rows: number): Promise<void> {
    this.#rows += rows;
    this.#rowsTotal = Math.max(this.#rowsTotal, this.#rows);
    await this.#params.onSlice?.({ rows: this.#rows, rowsTotal: this.#rowsTotal });
  }
}

interface Held {
  readonly tasks: number;
  readonly queued: number;
  readonly exempt: number;
}

interface Sum {
  waiting: number;
  inflight: number;
  exempt: number;
}

const NOTHING_HELD: Held = { tasks: 0, queued: 0, exempt: 0 };
const NO_MESSAGES_HELD = { tasks: 0, messages: 0 };
const NO_SUM: Sum = { waiting: 0, inflight: 0, exempt: 0 };

/** By the counters, which may be wrong: only for the progress. */
function estimateRows(db: SqliteDatabase): number {
  const row = db
    .prepare<{ tasks: number; ready: number }>(
      `select (select coalesce(sum(tasks), 0) from tally) as tasks, (select coalesce(sum(ready), 0) from line) as ready`,
    )
    .get();
  return 2 * (row?.tasks ?? 0) + (row?.ready ?? 0);
}

function add<Key extends string>(sum: Record<Key, number>, more: Readonly<Record<Key, number>>): void {
  for (const key of Object.keys(more) as Key[]) sum[key] += more[key];
}
