import { agentKey } from "../../../model/agent.ts";
import { NEWCOMER_LEAD, type Strategy } from "../../../model/lane.ts";
import { isCritical } from "../../../model/priority.ts";
import type { TaskLabels, TaskOrigin } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { EventLog } from "../log/event-log.ts";
import { BatchLedger } from "./batch-ledger.ts";
import { ConcurrencyKeyLedger, type WantedTask } from "./concurrency-key-ledger.ts";
import { SessionLedger } from "./session-ledger.ts";
import { hasKindLines, type LineKind, standingOf } from "./standing.ts";
import { TenantLedger } from "./tenant-ledger.ts";

/** A row of `line`, being changed. */
export interface Line {
  readonly id: number;
  readonly lane: string;
  readonly tenant: string;
  readonly agent: string;
  /** The only kind of tasks in this agent queue; '': all kinds. */
  readonly kind: LineKind;
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
  readonly newCriticalTasks: { readonly line: Line; readonly entry: ReadyEntry }[] = [];
  /** Lanes to check again: a waiting critical task may have lost the slot it waits for, or its agent may have room now. */
  readonly lanesToRecheck = new Set<string>();
  readonly #db: SqliteDatabase;
  readonly #lines = new Map<number, Line>();
  readonly #asRead = new Map<Line, Line>();
  readonly #lanes = new Map<string, LaneRow>();
  readonly #byAgent = new Map<string, Line[]>();
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
    return this.#db.lines.lanes(() => this.#db.prepare<LaneRow>("select * from lane").all());
  }

  /** Counts a task that starts (1) or stops (-1) waiting. */
  countWaiting(
    line: Line,
    { origin, session }: { origin: TaskOrigin; session: number | null },
    by: 1 | -1,
  ): void {
    const lane = this.lane(line.lane);
    line.waiting += by;
    lane.waiting += by;
    this.countSpecial(line, { origin, session }, by);
  }

  /** The counters of sessions, and of tasks that admission does not count. */
  countSpecial(
    line: Line,
    { origin, session: id }: { origin: TaskOrigin; session: number | null },
    by: 1 | -1,
  ): void {
    if (origin !== "task") line.exempt += by;
    if (id === null) return;
    const session = this.sessions.get(id);
    session.queued += by;
    if (origin === "message") session.messages += by;
  }

  line(id: number): Line {
    const known = this.#lines.get(id);
    if (known !== undefined) return known;
    const row =
      this.#db.lines.get(id) ??
      this.#db.prepare<Line>(`select ${LINE_COLUMNS} from line where id = ?`).get(id);
    if (row === undefined) throw new Error(`line ${id} is gone`);
    return this.adopt(row);
  }

  /** These agent queues. One query reads those that are not cached. */
  linesOf(ids: readonly number[]): Line[] {
    const unread = ids.filter((id) => !this.#lines.has(id) && this.#db.lines.get(id) === undefined);
    if (unread.length > 0) {
      const rows = this.#db
        .prepare<Line>(`select ${LINE_COLUMNS} from line where id in (select value from json_each(?))`)
        .all(JSON.stringify(unread));
      for (const row of rows) this.adopt(row);
    }
    return ids.map((id) => this.line(id));
  }

  /** The agent queue with these four values; created if it does not exist. */
  lineOf(lane: string, tenant: string, agent: string, kind: Line["kind"]): Line {
    const lines = this.linesOfAgent(tenant, agent);
    return (
      lines.find((line) => line.lane === lane && line.kind === kind) ??
      this.#create(lane, tenant, agent, kind)
    );
  }

  /** All queues of an agent: usually one for each lane that it has used. */
  linesOfAgent(tenant: string, agent: string): readonly Line[] {
    const key = agentKey({ tenant, agent });
    let lines = this.#byAgent.get(key);
    if (lines === undefined) {
      const rows =
        this.#db.lines.ofAgent(key) ??
        this.#db
          .prepare<Line>(`select ${LINE_COLUMNS} from line where tenant = ? and agent = ?`)
          .all(tenant, agent);
      lines = rows.map((row) => this.adopt(row));
      this.#byAgent.set(key, lines);
    }
    return lines;
  }

  /** How many tasks of the agent wait, in all lanes. */
  waitingOfAgent(tenant: string, agent: string): number {
    let sum = 0;
    for (const { waiting } of this.linesOfAgent(tenant, agent)) sum += waiting;
    return sum;
  }

  /** How many of these admission does not count. */
  exemptOfAgent(tenant: string, agent: string): number {
    let sum = 0;
    for (const { exempt } of this.linesOfAgent(tenant, agent)) sum += exempt;
    return sum;
  }

  /** Adds a row that a query read, unless this transaction has it already. */
  adopt(row: Line): Line {
    const known = this.#lines.get(row.id);
    if (known !== undefined) return known;
    const line = { ...row };
    this.#lines.set(line.id, line);
    this.#asRead.set(line, row);
    return line;
  }

  /** All agent queues that this transaction has read. */
  lines(): readonly Line[] {
    return [...this.#lines.values()];
  }

  /** Agent queues of a lane that this transaction may have changed: the index does not have these changes yet. */
  linesTouchedIn(lane: string): Line[] {
    this.#readSiblings();
    return [...this.#lines.values()].filter((line) => line.lane === lane);
  }

  /** How many more tasks this agent queue may start, apart from the total of its lane. */
  room(line: Line): number {
    return Math.min(line.ready, this.roomOfAgent(line));
  }

  /** Whether an agent queue could start one more task if it were ready, apart from the total of its lane. */
  couldStart(line: Line): boolean {
    return this.room({ ...line, ready: line.ready + 1 }) > 0;
  }

  /** Updates the counters of tenants with the changes of this transaction to their agent queues. */
  countTenants(): void {
    this.#readSiblings();
    for (const line of this.#lines.values()) this.#follow(line);
  }

  #follow(line: Line): { room: number; ahead: 0 | 1 } {
    const now = { room: this.room(line), ahead: this.isAhead(line) ? 1 : 0 } as const;
    this.tenants.follow(line, this.#asRead.get(line), now);
    return now;
  }

  /** How many more tasks the limits of its agent allow in this queue, however many are ready. 0 if no node can execute them. */
  roomOfAgent(line: Line): number {
    return line.standing === 0 ? Math.max(this.#agentRoom(line), 0) : 0;
  }

  /** Whether a queue of tasks that run alone has a ready task and the limits of its agent allow to start it. */
  mayRunAlone(line: Line): boolean {
    return line.ready > 0 && this.#agentRoom(line) > 0;
  }

  #agentRoom(line: Line): number {
    const perAgent = this.lane(line.lane).per_agent ?? Number.POSITIVE_INFINITY;
    if (line.agent_max === null && !hasKindLines(this.#db)) return perAgent - line.inflight;
    let inLane = 0;
    let inflight = 0;
    for (const sibling of this.linesOfAgent(line.tenant, line.agent)) {
      inflight += sibling.inflight;
      if (sibling.lane === line.lane) inLane += sibling.inflight;
    }
    return Math.min(perAgent - inLane, (line.agent_max ?? Number.POSITIVE_INFINITY) - inflight);
  }

  /** Whether the first task of the agent queue goes ahead of fairness. */
  isAhead(line: Line): boolean {
    return (
      line.head_rank !== null &&
      (isCritical(line.head_rank) || this.lane(line.lane).strategy === "priority-fifo")
    );
  }

  /** Only limits and its concurrency key still hold a task back. Without a key it becomes ready, else it asks for the key. */
  askForKey(task: WantedTask): void {
    const line = this.line(task.line);
    if (task.concurrency_key === null) this.addReady(line, { rank: task.rank, task_seq: task.seq });
    else this.keys.ask(line.tenant, task.concurrency_key, task);
  }

  addReady(line: Line, entry: ReadyEntry): void {
    this.#db
      .prepare("insert into ready (line, rank, task_seq) values (?, ?, ?)")
      .run(line.id, entry.rank, entry.task_seq);
    line.ready += 1;
    if (isCritical(entry.rank)) this.newCriticalTasks.push({ line, entry });
    if (
      line.head_rank === null ||
      line.head_seq === null ||
      comesBefore(entry, line.head_rank, line.head_seq)
    ) {
      line.head_rank = entry.rank;
      line.head_seq = entry.task_seq;
    }
  }

  removeReady(line: Line, entry: ReadyEntry): void {
    const removed = this.#db
      .prepare("delete from ready where line = ? and rank = ? and task_seq = ?")
      .run(line.id, entry.rank, entry.task_seq);
    if (removed.changes !== 1) throw new Error(`task ${entry.task_seq} is not ready in line ${line.id}`);
    line.ready -= 1;
    if (line.head_seq === entry.task_seq) this.#moveHead(line, this.#readyFrom(line, 1)[0]);
  }

  /** Removes the first `count` tasks of an agent queue from the ready set. The caller has counted them as started. */
  takeReady(line: Line, count: number): ReadyEntry[] {
    // Reads one more: the next task is the new head.
    const entries = this.#readyFrom(line, count + 1);
    const taken = entries.slice(0, count);
    const last = taken.at(-1);
    if (last === undefined || taken.length < count)
      throw new Error(`line ${line.id} has fewer ready than it counts`);
    this.#db
      .prepare("delete from ready where line = ? and (rank, task_seq) <= (?, ?)")
      .run(line.id, last.rank, last.task_seq);
    this.#moveHead(line, entries[count]);
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
    const saveLine = this.#db.prepare(
      `update line set waiting = ?, ready = ?, inflight = ?, head_rank = ?, head_seq = ?, last_served = ?,
                       tasks = ?, exempt = ?, room = ?, startable = ?, ahead = ? where id = ?`,
    );
    this.#readSiblings();
    for (const line of this.#lines.values()) {
      const asRead = this.#asRead.get(line);
      const { room, ahead } = this.#follow(line);
      const isAsRead = asRead?.room === room && asRead.ahead === ahead && !hasChanged(line, asRead);
      if (!limitsChanged && isAsRead) continue;
      line.room = room;
      line.ahead = ahead;
      saveLine.run(
        line.waiting,
        line.ready,
        line.inflight,
        line.head_rank,
        line.head_seq,
        line.last_served,
        line.tasks,
        line.exempt,
        room,
        room > 0 ? 1 : 0,
        ahead,
        line.id,
      );
    }
    this.tenants.countExempt((name) => this.lane(name));
    const saveLane = this.#db.prepare("update lane set waiting = ?, inflight = ?, exempt = ? where name = ?");
    const lanesAsRead = this.allLanes();
    for (const lane of this.#lanes.values()) {
      if (laneHasChanged(lane, lanesAsRead.get(lane.name)))
        saveLane.run(lane.waiting, lane.inflight, lane.exempt, lane.name);
    }
    this.tenants.save();
    this.#db.lines.stage([...this.#lines.values()], this.tenants.all(), this.#lanes.values());
    for (const [key, lines] of this.#byAgent) this.#db.lines.stageAgent(key, lines);
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
    const maySpan = hasKindLines(this.#db);
    for (const line of [...this.#lines.values()]) {
      if (maySpan || line.agent_max !== null) this.linesOfAgent(line.tenant, line.agent);
    }
  }

  #create(lane: string, tenant: string, agent: string, kind: Line["kind"]): Line {
    const row = this.#db
      .prepare<Line>(
        `insert into line (lane, tenant, agent, kind, standing, agent_max, last_served)
         values (@lane, @tenant, @agent, @kind, @standing,
                 (select max_inflight from agent where tenant = @tenant and agent = @agent), @served)
         returning ${LINE_COLUMNS}`,
      )
      .get({
        lane,
        tenant,
        agent,
        kind,
        standing: standingOf(this.#db, { tenant, agent, kind }),
        served: this.#db.lastEventSeq - NEWCOMER_LEAD,
      });
    const line = this.adopt(row as Line);
    if (kind !== "") this.#db.abilities.hasKindLines = true;
    this.tenants.ensure(lane, tenant);
    this.#byAgent.get(agentKey({ tenant, agent }))?.push(line);
    return line;
  }

  #readyFrom(line: Line, limit: number): ReadyEntry[] {
    return this.#db
      .prepare<ReadyEntry>("select rank, task_seq from ready where line = ? order by rank, task_seq limit +?")
      .all(line.id, limit);
  }

  #moveHead(line: Line, head: ReadyEntry | undefined): void {
    line.head_rank = head?.rank ?? null;
    line.head_seq = head?.task_seq ?? null;
  }
}

export const LINE_COLUMNS =
  "id, lane, tenant, agent, kind, standing, agent_max, waiting, ready, inflight, head_rank, head_seq, last_served, tasks, exempt, room, ahead";

function hasChanged(line: Line, asRead: Line | undefined): boolean {
  return (
    line.waiting !== asRead?.waiting ||
    line.inflight !== asRead.inflight ||
    line.ready !== asRead.ready ||
    line.head_seq !== asRead.head_seq ||
    line.head_rank !== asRead.head_rank ||
    line.last_served !== asRead.last_served ||
    line.tasks !== asRead.tasks
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
export function placeOf({ tenant, agent, lane }: Line): TaskLabels {
  return { tenant, agent, lane };
}
