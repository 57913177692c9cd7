import { agentKey } from "../../../model/agent.ts";
import { NEWCOMER_LEAD, type Strategy } from "../../../model/lane.ts";
import { isCritical } from "../../../model/priority.ts";
import type { TaskLabels, TaskOrigin } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { RowBatch, type RowStatement, rowStatement } from "../connection/row-batch.ts";
import { EventLog } from "../log/event-log.ts";
import { BatchLedger } from "./batch-ledger.ts";
import { ConcurrencyKeyLedger, type WantedTask } from "./concurrency-key-ledger.ts";
import { SessionLedger } from "./session-ledger.ts";
import { type AgentQueueKind, hasQueuesByKind, standingOf } from "./standing.ts";
import { TenantLedger } from "./tenant-ledger.ts";

/** A row of `line`, being changed. */
export interface AgentQueue {
  readonly id: number;
  readonly lane: string;
  readonly tenant: string;
  readonly agent: string;
  /** The only kind of tasks in this agent queue; '': all kinds. */
  readonly kind: AgentQueueKind;
  /**
   * Whether a live node can execute its tasks: 0 yes; 1 no, but its agent is served; 2 no, and its agent is not served. If its
   * tasks run alone, 1 means 0 or 1.
   */
  readonly standing: number;
  readonly agent_max: number | null;
  waiting: number;
  ready: number;
  inflight: number;
  head_rank: number | null;
  head_seq: number | null;
  last_served: number;
  /** Ended ones included. */
  tasks: number;
  /** How many of the waiting tasks admission does not count. */
  exempt: number;
  /** How many ready tasks could start, and whether the head goes ahead of fairness, as last stored. */
  room: number;
  ahead: 0 | 1;
}

/** A row of `lane`, being changed. */
export interface LaneRow {
  readonly name: string;
  readonly total: number | null;
  readonly per_agent: number | null;
  /** How many slots of `total` one tenant may hold while `second_tenant` is set; null: no limit. */
  readonly per_tenant: number | null;
  /** Whether a second enabled tenant exists. */
  readonly second_tenant: 0 | 1;
  readonly strategy: Strategy;
  readonly aging_ms: number;
  waiting: number;
  inflight: number;
  /** How many of the waiting tasks admission does not count, including all tasks of disabled tenants. */
  exempt: number;
}

export interface ReadyEntry {
  readonly rank: number;
  readonly task_seq: number;
}

/**
 * The counters that one transaction changes, and the events it writes. Counters are read when first needed, changed in memory,
 * and written once at the end: a busy agent queue costs one update per transaction, however many tasks moved.
 */
export class Ledger {
  readonly events: EventLog;
  readonly batches: BatchLedger;
  readonly sessions: SessionLedger;
  readonly tenants: TenantLedger;
  readonly keys = new ConcurrencyKeyLedger();
  /** Whether there may be release rows: ends or retries that still have to be passed on to dependants. */
  hasReleases = false;
  /** Critical tasks that became ready in this transaction. */
  readonly newCriticalTasks: { readonly agentQueue: AgentQueue; readonly entry: ReadyEntry }[] = [];
  /** Lanes to check again: a waiting critical task may have lost the slot it waits for, or its agent may have room now. */
  readonly lanesToRecheck = new Set<string>();
  readonly #db: SqliteDatabase;
  readonly #agentQueues = new Map<number, AgentQueue>();
  readonly #asRead = new Map<AgentQueue, AgentQueue>();
  readonly #lanes = new Map<string, LaneRow>();
  readonly #byAgent = new Map<string, AgentQueue[]>();
  /** What was asked for last: an insert asks for the queues of its agent several times. */
  #last: { readonly tenant: string; readonly agent: string; readonly agentQueues: AgentQueue[] } | null =
    null;
  readonly #tally = new Map<string, Map<string, number>>();

  constructor(db: SqliteDatabase) {
    this.#db = db;
    this.events = new EventLog(db);
    this.batches = new BatchLedger(db);
    this.sessions = new SessionLedger(db);
    this.tenants = new TenantLedger(db);
  }

  lane(name: string): LaneRow {
    let lane = this.#lanes.get(name);
    if (lane === undefined) {
      const row = this.allLanes().get(name);
      if (row === undefined) throw new Error(`lane "${name}" is not configured`);
      lane = { ...row };
      this.#lanes.set(name, lane);
    }
    return lane;
  }

  /** Every lane, as this transaction found it. */
  allLanes(): ReadonlyMap<string, LaneRow> {
    return this.#db.agentQueues.lanes(() => this.#db.prepare<LaneRow>("select * from lane").all());
  }

  /** Counts a task that starts (1) or stops (-1) waiting. */
  countWaiting(
    agentQueue: AgentQueue,
    { origin, session }: { origin: TaskOrigin; session: number | null },
    by: 1 | -1,
  ): void {
    const lane = this.lane(agentQueue.lane);
    agentQueue.waiting += by;
    lane.waiting += by;
    this.countSpecial(agentQueue, { origin, session }, by);
  }

  /** The counters of sessions, and of tasks that admission does not count. */
  countSpecial(
    agentQueue: AgentQueue,
    { origin, session: id }: { origin: TaskOrigin; session: number | null },
    by: 1 | -1,
  ): void {
    if (origin !== "task") agentQueue.exempt += by;
    if (id === null) return;
    const session = this.sessions.get(id);
    session.queued += by;
    if (origin === "message") session.messages += by;
  }

  agentQueue(id: number): AgentQueue {
    const known = this.#agentQueues.get(id);
    if (known !== undefined) return known;
    const row =
      this.#db.agentQueues.get(id) ??
      this.#db.prepare<AgentQueue>(`select ${AGENT_QUEUE_COLUMNS} from line where id = ?`).get(id);
    if (row === undefined) throw new Error(`line ${id} is gone`);
    return this.adopt(row);
  }

  /** These agent queues. One query reads those that are not cached. */
  agentQueuesOf(ids: readonly number[]): AgentQueue[] {
    const unread = ids.filter(
      (id) => !this.#agentQueues.has(id) && this.#db.agentQueues.get(id) === undefined,
    );
    if (unread.length > 0) {
      const rows = this.#db
        .prepare<AgentQueue>(
          `select ${AGENT_QUEUE_COLUMNS} from line where id in (select value from json_each(?))`,
        )
        .all(JSON.stringify(unread));
      for (const row of rows) this.adopt(row);
    }
    return ids.map((id) => this.agentQueue(id));
  }

  /** The agent queue with these four values; created if it does not exist. */
  agentQueueOf(lane: string, tenant: string, agent: string, kind: AgentQueue["kind"]): AgentQueue {
    const agentQueues = this.agentQueuesOfAgent(tenant, agent);
    return (
      agentQueues.find((agentQueue) => agentQueue.lane === lane && agentQueue.kind === kind) ??
      this.#create(lane, tenant, agent, kind)
    );
  }

  /** All queues of an agent: usually one for each lane that it has used. */
  agentQueuesOfAgent(tenant: string, agent: string): readonly AgentQueue[] {
    if (this.#last?.agent === agent && this.#last.tenant === tenant) return this.#last.agentQueues;
    const key = agentKey({ tenant, agent });
    let agentQueues = this.#byAgent.get(key);
    if (agentQueues === undefined) {
      const rows =
        this.#db.agentQueues.ofAgent(key) ??
        this.#db
          .prepare<AgentQueue>(`select ${AGENT_QUEUE_COLUMNS} from line where tenant = ? and agent = ?`)
          .all(tenant, agent);
      agentQueues = rows.map((row) => this.adopt(row));
      this.#byAgent.set(key, agentQueues);
    }
    this.#last = { tenant, agent, agentQueues };
    return agentQueues;
  }

  /** How many tasks of the agent wait, in all lanes. */
  waitingOfAgent(tenant: string, agent: string): number {
    let sum = 0;
    for (const { waiting } of this.agentQueuesOfAgent(tenant, agent)) sum += waiting;
    return sum;
  }

  /** How many of these admission does not count. */
  exemptOfAgent(tenant: string, agent: string): number {
    let sum = 0;
    for (const { exempt } of this.agentQueuesOfAgent(tenant, agent)) sum += exempt;
    return sum;
  }

  /** Adds a row that a query read, unless this transaction has it already. */
  adopt(row: AgentQueue): AgentQueue {
    const known = this.#agentQueues.get(row.id);
    if (known !== undefined) return known;
    const agentQueue = { ...row };
    this.#agentQueues.set(agentQueue.id, agentQueue);
    this.#asRead.set(agentQueue, row);
    return agentQueue;
  }

  /** All agent queues that this transaction has read. */
  agentQueues(): readonly AgentQueue[] {
    return [...this.#agentQueues.values()];
  }

  /** Agent queues of a lane that this transaction may have changed: the index does not have these changes yet. */
  agentQueuesTouchedIn(lane: string): AgentQueue[] {
    this.#readSiblings();
    return [...this.#agentQueues.values()].filter((agentQueue) => agentQueue.lane === lane);
  }

  /** How many more tasks this agent queue may start, apart from the total of its lane. */
  room(agentQueue: AgentQueue): number {
    return Math.min(agentQueue.ready, this.roomOfAgent(agentQueue));
  }

  /** Whether an agent queue could start one more task if it were ready, apart from the total of its lane. */
  couldStart(agentQueue: AgentQueue): boolean {
    return this.room({ ...agentQueue, ready: agentQueue.ready + 1 }) > 0;
  }

  /** Updates the counters of tenants with the changes of this transaction to their agent queues. */
  countTenants(): void {
    this.#readSiblings();
    for (const agentQueue of this.#agentQueues.values()) this.#follow(agentQueue);
  }

  /** The same after a start of one agent queue. What it means for other queues of its agent is left to the next call. */
  countTenantOf(agentQueue: AgentQueue): void {
    this.#follow(agentQueue);
  }

  #follow(agentQueue: AgentQueue): { room: number; ahead: 0 | 1 } {
    const now = { room: this.room(agentQueue), ahead: this.isAhead(agentQueue) ? 1 : 0 } as const;
    this.tenants.follow(agentQueue, this.#asRead.get(agentQueue), now);
    return now;
  }

  /** How many more tasks the limits of its agent allow in this queue, however many are ready. 0 if no node can execute them. */
  roomOfAgent(agentQueue: AgentQueue): number {
    return agentQueue.standing === 0 ? Math.max(this.#agentRoom(agentQueue), 0) : 0;
  }

  /** The same for a queue whose tasks workers run. */
  roomForWorkers(agentQueue: AgentQueue): number {
    return Math.min(agentQueue.ready, Math.max(this.#agentRoom(agentQueue), 0));
  }

  /** Whether a queue of tasks that run alone has a ready task and the limits of its agent allow to start it. */
  mayRunAlone(agentQueue: AgentQueue): boolean {
    return agentQueue.ready > 0 && this.#agentRoom(agentQueue) > 0;
  }

  #agentRoom(agentQueue: AgentQueue): number {
    const perAgent = this.lane(agentQueue.lane).per_agent ?? Number.POSITIVE_INFINITY;
    if (agentQueue.agent_max === null && !hasQueuesByKind(this.#db)) return perAgent - agentQueue.inflight;
    let inLane = 0;
    let inflight = 0;
    for (const sibling of this.agentQueuesOfAgent(agentQueue.tenant, agentQueue.agent)) {
      inflight += sibling.inflight;
      if (sibling.lane === agentQueue.lane) inLane += sibling.inflight;
    }
    return Math.min(perAgent - inLane, (agentQueue.agent_max ?? Number.POSITIVE_INFINITY) - inflight);
  }

  /** Whether the first task of the agent queue goes ahead of fairness. */
  isAhead(agentQueue: AgentQueue): boolean {
    return (
      agentQueue.head_rank !== null &&
      (isCritical(agentQueue.head_rank) || this.lane(agentQueue.lane).strategy === "priority-fifo")
    );
  }

  /** Only limits and its concurrency key still hold a task back. Without a key it becomes ready, else it asks for the key. */
  askForKey(task: WantedTask): void {
    const agentQueue = this.agentQueue(task.line);
    if (task.concurrency_key === null) this.addReady(agentQueue, { rank: task.rank, task_seq: task.seq });
    else this.keys.ask(agentQueue.tenant, task.concurrency_key, task);
  }

  addReady(agentQueue: AgentQueue, entry: ReadyEntry): void {
    this.#db
      .prepare("insert into ready (line, rank, task_seq) values (?, ?, ?)")
      .run(agentQueue.id, entry.rank, entry.task_seq);
    this.countReady(agentQueue, entry);
  }

  /** The same for a task whose row the caller adds to the ready set. */
  countReady(agentQueue: AgentQueue, entry: ReadyEntry): void {
    agentQueue.ready += 1;
    if (isCritical(entry.rank)) this.newCriticalTasks.push({ agentQueue, entry });
    if (
      agentQueue.head_rank === null ||
      agentQueue.head_seq === null ||
      comesBefore(entry, agentQueue.head_rank, agentQueue.head_seq)
    ) {
      agentQueue.head_rank = entry.rank;
      agentQueue.head_seq = entry.task_seq;
    }
  }

  removeReady(agentQueue: AgentQueue, entry: ReadyEntry): void {
    const removed = this.#db
      .prepare("delete from ready where line = ? and rank = ? and task_seq = ?")
      .run(agentQueue.id, entry.rank, entry.task_seq);
    if (removed.changes !== 1)
      throw new Error(`task ${entry.task_seq} is not ready in line ${agentQueue.id}`);
    agentQueue.ready -= 1;
    if (agentQueue.head_seq === entry.task_seq) this.#moveHead(agentQueue, this.#readyFrom(agentQueue, 1)[0]);
  }

  /** Removes the first `count` tasks of an agent queue from the ready set. The caller has counted them as started. */
  takeReady(agentQueue: AgentQueue, count: number): ReadyEntry[] {
    // Reads one more: the next task is the new head.
    const entries = this.#readyFrom(agentQueue, count + 1);
    const taken = entries.slice(0, count);
    const last = taken.at(-1);
    if (last === undefined || taken.length < count)
      throw new Error(`line ${agentQueue.id} has fewer ready than it counts`);
    this.#db
      .prepare("delete from ready where line = ? and (rank, task_seq) <= (?, ?)")
      .run(agentQueue.id, last.rank, last.task_seq);
    this.#moveHead(agentQueue, entries[count]);
    return taken;
  }

  /** Adds `tasks` (may be negative) to the number of a tenant's tasks in a state. */
  count(tenant: string, state: string, tasks: number): void {
    let states = this.#tally.get(tenant);
    if (states === undefined) {
      states = new Map();
      this.#tally.set(tenant, states);
    }
    states.set(state, (states.get(state) ?? 0) + tasks);
  }

  /** Writes the changes; the last step of a transaction. `limitsChanged`: agent queues may start more or fewer tasks now. */
  save({ limitsChanged = false } = {}): void {
    this.#readSiblings();
    const all = new RowBatch(this.#db, SAVE_AGENT_QUEUES);
    const counts = new RowBatch(this.#db, SAVE_COUNTS);
    for (const agentQueue of this.#agentQueues.values()) {
      const asRead = this.#asRead.get(agentQueue);
      const { room, ahead } = this.#follow(agentQueue);
      const isAsRead = asRead?.room === room && asRead.ahead === ahead && !hasChanged(agentQueue, asRead);
      if (!limitsChanged && isAsRead) continue;
      agentQueue.room = room;
      agentQueue.ahead = ahead;
      if (!limitsChanged && asRead !== undefined && hasSameOrder(agentQueue, asRead))
        counts.add(countsOf(agentQueue));
      else all.add(allOf(agentQueue));
    }
    all.write();
    counts.write();
    this.tenants.countExempt((name) => this.lane(name));
    const saveLane = this.#db.prepare("update lane set waiting = ?, inflight = ?, exempt = ? where name = ?");
    const lanesAsRead = this.allLanes();
    for (const lane of this.#lanes.values()) {
      if (laneHasChanged(lane, lanesAsRead.get(lane.name)))
        saveLane.run(lane.waiting, lane.inflight, lane.exempt, lane.name);
    }
    this.tenants.save();
    this.#db.agentQueues.stage([...this.#agentQueues.values()], this.tenants.all(), this.#lanes.values());
    for (const [key, agentQueues] of this.#byAgent) this.#db.agentQueues.stageAgent(key, agentQueues);
    this.batches.save();
    this.sessions.save();
    this.events.save();
    const addToTally = this.#db.prepare("update tally set tasks = tasks + ? where tenant = ? and state = ?");
    const startTally = this.#db.prepare("insert into tally (tasks, tenant, state) values (?, ?, ?)");
    for (const [tenant, states] of this.#tally) {
      for (const [state, tasks] of states) {
        if (tasks === 0) continue;
        if (addToTally.run(tasks, tenant, state).changes === 0) startTally.run(tasks, tenant, state);
      }
    }
  }

  /** If an agent has a limit over several queues, a change in one of them changes the room in all others. */
  #readSiblings(): void {
    const maySpan = hasQueuesByKind(this.#db);
    for (const agentQueue of [...this.#agentQueues.values()]) {
      if (maySpan || agentQueue.agent_max !== null)
        this.agentQueuesOfAgent(agentQueue.tenant, agentQueue.agent);
    }
  }

  #create(lane: string, tenant: string, agent: string, kind: AgentQueue["kind"]): AgentQueue {
    const row = this.#db
      .prepare<AgentQueue>(
        `insert into line (lane, tenant, agent, kind, standing, agent_max, last_served)
         values (@lane, @tenant, @agent, @kind, @standing,
                 (select max_inflight from agent where tenant = @tenant and agent = @agent), @served)
         returning ${AGENT_QUEUE_COLUMNS}`,
      )
      .get({
        lane,
        tenant,
        agent,
        kind,
        standing: standingOf(this.#db, { tenant, agent, kind }),
        served: this.#db.lastEventSeq - NEWCOMER_LEAD,
      });
    const agentQueue = this.adopt(row as AgentQueue);
    if (kind !== "") this.#db.abilities.hasQueuesByKind = true;
    this.tenants.ensure(lane, tenant);
    this.#byAgent.get(agentKey({ tenant, agent }))?.push(agentQueue);
    return agentQueue;
  }

  #readyFrom(agentQueue: AgentQueue, limit: number): ReadyEntry[] {
    return this.#db
      .prepare<ReadyEntry>("select rank, task_seq from ready where line = ? order by rank, task_seq limit +?")
      .all(agentQueue.id, limit);
  }

  #moveHead(agentQueue: AgentQueue, head: ReadyEntry | undefined): void {
    agentQueue.head_rank = head?.rank ?? null;
    agentQueue.head_seq = head?.task_seq ?? null;
  }
}

export const AGENT_QUEUE_COLUMNS =
  "id, lane, tenant, agent, kind, standing, agent_max, waiting, ready, inflight, head_rank, head_seq, last_served, tasks, exempt, room, ahead";

const SAVE_AGENT_QUEUES = updateStatement([
  ...["waiting", "ready", "inflight", "head_rank", "head_seq", "last_served", "tasks"],
  ...["exempt", "room", "startable", "ahead"],
]);

function allOf(agentQueue: AgentQueue): unknown[] {
  const { waiting, ready, inflight, head_rank, head_seq, last_served, tasks, exempt, room, ahead, id } =
    agentQueue;
  const order = [inflight, head_rank, head_seq, last_served];
  return [waiting, ready, ...order, tasks, exempt, room, room > 0 ? 1 : 0, ahead, id];
}

/**
 * Writes only what no index has: SQLite rewrites the entries of an index whose columns are set, even to the same values, which is one
 * more page for each commit. `hasSameOrder` must compare every column that this does not write and `SAVE_AGENT_QUEUES` does.
 */
const SAVE_COUNTS = updateStatement(["waiting", "ready", "tasks", "exempt", "room"]);

function countsOf({ waiting, ready, tasks, exempt, room, id }: AgentQueue): unknown[] {
  return [waiting, ready, tasks, exempt, room, id];
}

/** Sets these columns of agent queues. Their ids are the last values of the rows. */
function updateStatement(columns: readonly string[]): RowStatement {
  const set = columns.map((column, index) => `${column} = column${index + 1}`).join(", ");
  const row = `(${[...columns, "id"].map(() => "?").join(", ")})`;
  return {
    one: `update line set ${columns.map((column) => `${column} = ?`).join(", ")} where id = ?`,
    ten: rowStatement(
      row,
      (rows) => `update line set ${set} from (values ${rows}) where id = column${columns.length + 1}`,
    ).ten,
  };
}

function hasChanged(agentQueue: AgentQueue, asRead: AgentQueue | undefined): boolean {
  return (
    agentQueue.waiting !== asRead?.waiting ||
    agentQueue.inflight !== asRead.inflight ||
    agentQueue.ready !== asRead.ready ||
    agentQueue.head_seq !== asRead.head_seq ||
    agentQueue.head_rank !== asRead.head_rank ||
    agentQueue.last_served !== asRead.last_served ||
    agentQueue.tasks !== asRead.tasks
  );
}

/** Whether no column of an index on agent queues has changed. Compares all that `SAVE_COUNTS` does not write. */
function hasSameOrder(agentQueue: AgentQueue, asRead: AgentQueue): boolean {
  return (
    agentQueue.inflight === asRead.inflight &&
    agentQueue.last_served === asRead.last_served &&
    agentQueue.head_seq === asRead.head_seq &&
    agentQueue.head_rank === asRead.head_rank &&
    agentQueue.ahead === asRead.ahead &&
    agentQueue.room > 0 === asRead.room > 0
  );
}

function laneHasChanged(lane: LaneRow, asRead: LaneRow | undefined): boolean {
  return (
    lane.waiting !== asRead?.waiting || lane.inflight !== asRead.inflight || lane.exempt !== asRead.exempt
  );
}

function comesBefore(entry: ReadyEntry, rank: number, seq: number): boolean {
  return entry.rank < rank || (entry.rank === rank && entry.task_seq < seq);
}

/** The tenant, agent and lane of an agent queue. */
export function labelsOf({ tenant, agent, lane }: AgentQueue): TaskLabels {
  return { tenant, agent, lane };
}
