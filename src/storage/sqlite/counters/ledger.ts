import { NEWCOMER_LEAD, type Strategy } from "../../../model/lane.ts";
import { isCritical } from "../../../model/priority.ts";
import type { TaskOrigin, TaskPlace } from "../../storage.ts";
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
  /** The kind of tasks that it holds alone; '': all kinds. */
  readonly kind: LineKind;
  /**
   * Whether a live node can execute its tasks: 0 yes; 1 no, but its agent is served; 2 no, and it is not. Of a line whose tasks
   * run alone 1 stands for 0 and 1.
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
  /** Of the waiting, those that admission does not count. */
  exempt: number;
  /** How many of the ready could start, and whether the head goes ahead, as they were written down last. */
  room: number;
  ahead: 0 | 1;
}

/** A row of `lane`, being changed. */
export interface LaneRow {
  readonly name: string;
  readonly total: number | null;
  readonly per_agent: number | null;
  /** How many slots of `total` one tenant holds at most while `second_tenant` is set; null: no bound. */
  readonly per_tenant: number | null;
  /** Whether a second enabled tenant exists. */
  readonly second_tenant: 0 | 1;
  readonly strategy: Strategy;
  readonly aging_ms: number;
  waiting: number;
  inflight: number;
  /** Of the waiting, those that admission does not count; all of disabled tenants are among them. */
  exempt: number;
}

export interface ReadyEntry {
  readonly rank: number;
  readonly task_seq: number;
}

/**
 * The counters that one transaction touches, and the events it tells. Counters are read when first needed, changed in
 * memory, and written once at the end, however many tasks moved: a busy line costs one update per transaction.
 */
export class Ledger {
  readonly events: EventLog;
  readonly batches: BatchLedger;
  readonly sessions: SessionLedger;
  readonly tenants: TenantLedger;
  readonly keys = new ConcurrencyKeyLedger();
  /** Whether an end was written down of which dependants have yet to be told. */
  hasReleases = false;
  /** Critical tasks that became ready in this transaction. */
  readonly arrivals: { readonly line: Line; readonly entry: ReadyEntry }[] = [];
  /** Lanes in which a critical task that waits may have lost the slot it waits for, or found room of its agent. */
  readonly shaken = new Set<string>();
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

  /** Counts a task that begins or ceases to wait. */
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

  /** What only tasks of a session, and those that admission does not count, are counted in. */
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

  /** These lines; those that nobody has read lately in one go. */
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

  /** The line of these four, made when it is the first time. */
  lineOf(lane: string, tenant: string, agent: string, kind: Line["kind"]): Line {
    const lines = this.linesOfAgent(tenant, agent);
    return (
      lines.find((line) => line.lane === lane && line.kind === kind) ??
      this.#create(lane, tenant, agent, kind)
    );
  }

  /** Every line of an agent: mostly one for each lane it has ever used. */
  linesOfAgent(tenant: string, agent: string): readonly Line[] {
    const name = agentName(tenant, agent);
    let lines = this.#byAgent.get(name);
    if (lines === undefined) {
      const rows =
        this.#db.lines.ofAgent(name) ??
        this.#db
          .prepare<Line>(`select ${LINE_COLUMNS} from line where tenant = ? and agent = ?`)
          .all(tenant, agent);
      lines = rows.map((row) => this.adopt(row));
      this.#byAgent.set(name, lines);
    }
    return lines;
  }

  /** Everything the agent has waiting, in all lanes. */
  waitingOfAgent(tenant: string, agent: string): number {
    let sum = 0;
    for (const { waiting } of this.linesOfAgent(tenant, agent)) sum += waiting;
    return sum;
  }

  /** Those of them that admission does not count. */
  exemptOfAgent(tenant: string, agent: string): number {
    let sum = 0;
    for (const { exempt } of this.linesOfAgent(tenant, agent)) sum += exempt;
    return sum;
  }

  /** Takes a row that a query read, unless this transaction has changed it already. */
  adopt(row: Line): Line {
    const known = this.#lines.get(row.id);
    if (known !== undefined) return known;
    const line = { ...row };
    this.#lines.set(line.id, line);
    this.#asRead.set(line, row);
    return line;
  }

  /** Every line that this transaction has looked at. */
  lines(): readonly Line[] {
    return [...this.#lines.values()];
  }

  /** Lines of a lane that this transaction may have changed, whether or not an index would find them as they are now. */
  linesTouchedIn(lane: string): Line[] {
    this.#readSiblings();
    return [...this.#lines.values()].filter((line) => line.lane === lane);
  }

  /** How many more tasks this line may start, its lane's total aside. */
  room(line: Line): number {
    return Math.min(line.ready, this.roomOfAgent(line));
  }

  /** Whether a line could start one more task if that were ready, its lane's total aside. */
  couldStart(line: Line): boolean {
    return this.room({ ...line, ready: line.ready + 1 }) > 0;
  }

  /** Brings tenants up to date with what this transaction has moved in their lines. */
  countTenants(): void {
    this.#readSiblings();
    for (const line of this.#lines.values()) this.#follow(line);
  }

  #follow(line: Line): { room: number; ahead: 0 | 1 } {
    const now = { room: this.room(line), ahead: this.isAhead(line) ? 1 : 0 } as const;
    this.tenants.follow(line, this.#asRead.get(line), now);
    return now;
  }

  /** How many more tasks the limits of its agent allow in this line, however many are ready: none that no node can execute. */
  roomOfAgent(line: Line): number {
    return line.standing === 0 ? Math.max(this.#agentRoom(line), 0) : 0;
  }

  /** Whether the limits of its agent allow to start one of a line whose tasks run alone. */
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

  /** Whether the head of the line goes ahead of fairness. */
  isAhead(line: Line): boolean {
    return (
      line.head_rank !== null &&
      (isCritical(line.head_rank) || this.lane(line.lane).strategy === "priority-fifo")
    );
  }

  /** Nothing but limits and its concurrency key is in the way of a task: without one it is ready. */
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
    if (isCritical(entry.rank)) this.arrivals.push({ line, entry });
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

  /** Takes the first `count` tasks out of the ready set of a line that has counted them as started. */
  takeReady(line: Line, count: number): ReadyEntry[] {
    // One more than asked for: the one after them is the new head.
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

  /** Moves `tasks` tasks of a tenant in or out of a state. */
  count(tenant: string, state: string, tasks: number): void {
    let states = this.#tally.get(tenant);
    if (states === undefined) {
      states = new Map();
      this.#tally.set(tenant, states);
    }
    states.set(state, (states.get(state) ?? 0) + tasks);
  }

  /** Writes down what has changed; the last step of a transaction. `limitsChanged`: lines may start more or less now. */
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
    for (const [name, lines] of this.#byAgent) this.#db.lines.stageAgent(name, lines);
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

  /** An agent with a limit over several lines can be filled or freed in one of them and so change in all others. */
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
    this.#byAgent.get(agentName(tenant, agent))?.push(line);
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

/** A tenant's name may hold anything: its length is what tells where it ends. */
function agentName(tenant: string, agent: string): string {
  return `${tenant.length} ${tenant} ${agent}`;
}

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

/** Whose the tasks of a line are. */
export function placeOf({ tenant, agent, lane }: Line): TaskPlace {
  return { tenant, agent, lane };
}
