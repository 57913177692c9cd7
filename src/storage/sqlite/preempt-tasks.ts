import { FRONT_RANK, isCritical } from "../../model/priority.ts";
import { preemptionError } from "../preemption-error.ts";
import { candidateLines } from "./claim-tasks.ts";
import type { SqliteDatabase } from "./database.ts";
import { closeAttempt, type EndedLease, freeSlot, LEASE_COLUMNS } from "./end-attempt.ts";
import type { LaneRow, Ledger, Line, ReadyEntry } from "./ledger.ts";
import { settleMoves } from "./settle-moves.ts";

/**
 * For each critical task that became ready in this transaction and finds no free slot, makes one that runs give way. The
 * last step before the ledger is saved: what was claimed meanwhile needs no slot.
 */
export function preemptTasks(db: SqliteDatabase, ledger: Ledger, now: number): void {
  if (ledger.arrivals.length === 0) return;
  const isReady = db.prepare("select 1 from ready where line = ? and rank = ? and task_seq = ?");
  const arrivals = ledger.arrivals
    .splice(0)
    .filter(({ line, entry }) => isReady.get(line.id, entry.rank, entry.task_seq) !== undefined)
    .sort((a, b) => byRank(a.entry, b.entry));
  const byLane = Map.groupBy(arrivals, ({ line }) => line.lane);
  const tokens = [...byLane.keys()]
    .sort()
    .flatMap((lane) => preemptIn(db, ledger, ledger.lane(lane), byLane.get(lane) ?? [], now));
  if (tokens.length === 0) return;
  // Of a session that may run fewer by now, it steps back at once.
  settleMoves(db, ledger, now);
  db.signal({ kind: "events" });
  db.signal({ kind: "fenced", tokens, reason: "preempted" });
  db.signal({ kind: "work" });
}

type Arrival = Ledger["arrivals"][number];

function preemptIn(
  db: SqliteDatabase,
  ledger: Ledger,
  lane: LaneRow,
  arrivals: readonly Arrival[],
  now: number,
): number[] {
  const nodes = servingNodes(db, lane);
  const seated = findSeats(db, ledger, lane, freeSlots(lane, nodes));
  const tokens: number[] = [];
  // Everybody's need is settled before the first one gives way.
  const needs = arrivals.map((arrival) => ({ ...arrival, heldByAgent: isHeldByAgent(db, ledger, arrival) }));
  for (const { line, entry, heldByAgent } of needs) {
    if (!heldByAgent && seated.has(entry.task_seq)) continue;
    const victim = findVictim(db, line, nodes, heldByAgent);
    if (victim === undefined) continue;
    giveWay(db, ledger, victim, entry, now);
    tokens.push(victim.token);
    if (lane.strategy === "fair-fifo") lane.ahead_streak -= 1;
  }
  return tokens;
}

interface ServingNode {
  readonly node: string;
  readonly free: number;
}

/**
 * How many slots of a lane are free on each node that would fill one that becomes free. One that has taken its slots
 * back, or more than it has left, would not.
 */
function servingNodes(db: SqliteDatabase, lane: LaneRow): ServingNode[] {
  return db
    .prepare<ServingNode>(
      `select s.node, s.slots - coalesce(h.held, 0) as free
         from node_slot s join node n on n.id = s.node
         left join (select l.node, count(*) as held from lease l join line on line.id = l.line
                     where line.lane = @lane group by l.node) h on h.node = s.node
        where s.lane = @lane and n.dead = 0 and free >= 0`,
    )
    .all({ lane: lane.name });
}

/** Slots of a lane over all nodes that nobody has taken. */
function freeSlots(lane: LaneRow, nodes: readonly ServingNode[]): number {
  const free = nodes.reduce((sum, node) => sum + node.free, 0);
  return Math.max(Math.min(free, (lane.total ?? Number.POSITIVE_INFINITY) - lane.inflight), 0);
}

/** The critical tasks that the free slots of a lane are for. */
function findSeats(db: SqliteDatabase, ledger: Ledger, lane: LaneRow, free: number): Set<number> {
  if (free === 0) return new Set();
  const first = db.prepare<ReadyEntry>(
    "select rank, task_seq from ready where line = ? and rank <= 0 order by rank, task_seq limit ?",
  );
  const usable = candidateLines(db, ledger, lane, free, "ahead = 1", "head_rank, head_seq").flatMap((line) =>
    line.head_rank !== null && isCritical(line.head_rank)
      ? first.all(line.id, Math.min(ledger.roomOfAgent(line), free))
      : [],
  );
  return new Set(
    usable
      .sort(byRank)
      .slice(0, free)
      .map(({ task_seq }) => task_seq),
  );
}

/** Whether those before it fill what its agent may still run. */
function isHeldByAgent(db: SqliteDatabase, ledger: Ledger, { line, entry }: Arrival): boolean {
  const room = ledger.roomOfAgent(line);
  if (room === Number.POSITIVE_INFINITY) return false;
  const before = db
    .prepare<{ tasks: number }>(
      `select count(*) as tasks
         from (select 1 from ready where line = ? and (rank, task_seq) < (?, ?) limit ?)`,
    )
    .get(line.id, entry.rank, entry.task_seq, room);
  return (before?.tasks ?? 0) >= room;
}

/** Who gives way: the least urgent, of those the one that started last. */
function findVictim(
  db: SqliteDatabase,
  line: Line,
  nodes: readonly ServingNode[],
  ofSameAgent: boolean,
): EndedLease | undefined {
  const columns = LEASE_COLUMNS.split(", ").map((column) => `l.${column}`);
  return db
    .prepare<EndedLease>(
      `select ${columns} from lease l indexed by lease_preemptible join line n on n.id = l.line
        where l.preemptible = 1 and n.lane = @lane and n.tenant = @tenant and (@anyAgent = 1 or n.agent = @agent)
          and l.node in (select value from json_each(@nodes))
        order by l.priority desc, l.token desc limit 1`,
    )
    .get({
      lane: line.lane,
      tenant: line.tenant,
      agent: line.agent,
      anyAgent: ofSameAgent ? 0 : 1,
      nodes: JSON.stringify(nodes.map(({ node }) => node)),
    });
}

/** Back to the front of all that are not critical; nothing is counted as a retry. */
function giveWay(db: SqliteDatabase, ledger: Ledger, lease: EndedLease, to: ReadyEntry, now: number): void {
  const { task_seq: taskSeq, attempt } = lease;
  const by = db.prepare<{ id: string }>("select id from task where seq = ?").get(to.task_seq);
  const error = preemptionError(by?.id ?? "");
  db.prepare("delete from lease where task_seq = ?").run(taskSeq);
  const line = freeSlot(ledger, lease);
  closeAttempt(db, lease, { outcome: "preempted", error, now });
  db.prepare(
    `update task set rank = ?, preemptions_left = preemptions_left - 1, executions = ?,
                     started_at = coalesce(started_at, ?)
      where seq = ?`,
  ).run(FRONT_RANK, attempt, lease.started_at, taskSeq);
  ledger.countWaiting(line, lease, 1);
  ledger.addReady(line, { rank: FRONT_RANK, task_seq: taskSeq });
  ledger.events.add({
    type: "task.preempted",
    at: now,
    tenant: line.tenant,
    taskSeq,
    data: { attempt, error },
  });
}

function byRank(a: ReadyEntry, b: ReadyEntry): number {
  return a.rank - b.rank || a.task_seq - b.task_seq;
}
