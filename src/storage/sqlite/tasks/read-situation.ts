import type { TaskRecord } from "../../../model/task-record.ts";
import { type TaskState, WAITING_STATES } from "../../../model/task-state.ts";
import { isAloneKind } from "../../alone-queue.ts";
import { AHEAD_MAX, ALL_AGENTS, type TaskSituation } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { LaneRow } from "../counters/ledger.ts";
import type { SessionRow } from "../counters/session-ledger.ts";
import {
  type AgentQueueKind,
  IS_ALONE,
  isExecutable,
  isForWorkers,
  isServed,
  isWorkerAgent,
} from "../counters/standing.ts";
import { maxOf } from "../sessions/steps/settle-sessions.ts";
import { NodeShares } from "../tenants/tenant-shares.ts";
import { getTask } from "./read-tasks.ts";

/** What keeps a task from starting. */
export async function readSituation(
  db: SqliteDatabase,
  params: { tenant: string; id: string },
): Promise<TaskSituation | null> {
  const task = await getTask(db, params);
  if (task === null) return null;
  return db.read(() => {
    const limits = db.prepare<Limits>(LIMITS).get(task.seq) as Limits;
    const key = readKey(db, task);
    const before = key === null ? BEFORE : BEFORE_FOR_KEY;
    const ahead = db
      .prepare<{ id: string }>(namesAhead(before))
      .all({ seq: task.seq, limit: AHEAD_MAX.named });
    const counted = db
      .prepare<{ count: number }>(countAhead(before))
      .get({ seq: task.seq, limit: AHEAD_MAX.counted });
    const parents = db.prepare<{ id: string; state: TaskState }>(PARENTS).all(task.seq);
    return {
      task,
      lane: { inflight: limits.lane_inflight, total: limits.total, perAgent: limits.per_agent },
      tenant: {
        disabled: limits.tenant_disabled === 1,
        inflight: limits.tenant_inflight,
        max: limits.tenant_max,
      },
      laneShare: readLaneShare(db, task),
      agent: { inLane: limits.inflight, inflight: limits.agent_inflight, max: limits.agent_max },
      ahead: { ids: ahead.map(({ id }) => id), count: counted?.count ?? 0 },
      batch: readBatch(db, task),
      session: readSession(db, task),
      noExecutor: readNoExecutor(db, task),
      workers: readWorkers(db, task),
      alone: readAlone(db, task),
      key,
      parents,
    };
  });
}

/** Null unless the task waits and no live node can execute it. */
function readNoExecutor(
  db: SqliteDatabase,
  { seq, tenant, agent, state }: TaskRecord,
): TaskSituation["noExecutor"] {
  if (!(WAITING_STATES as readonly TaskState[]).includes(state)) return null;
  const row = db
    .prepare<NoExecutorRow>(
      `select (select at from unserved where task_seq = t.seq) as since, (select at from agent_seen where agent = n.agent) as node_at,
              (select at from worker_agent_seen where tenant = n.tenant and agent = n.agent) as worker_at, n.id, n.kind
         from task t join line n on n.id = t.line where t.seq = ? and n.standing <> 0`,
    )
    .get(seq);
  if (row === undefined || isForWorkers(db, row.id)) return null;
  if (isAloneKind(row.kind) && isExecutable(db, { tenant, agent, kind: row.kind })) return null;
  const lastSeenAt = Math.max(row.node_at ?? 0, row.worker_at ?? 0);
  return {
    served: isServed(db, { tenant, agent }),
    byWorkers:
      isWorkerAgent(db, { tenant, agent }) || (row.worker_at !== null && row.worker_at >= (row.node_at ?? 0)),
    lastSeenAt: lastSeenAt === 0 ? null : lastSeenAt,
    since: row.since,
  };
}

/** Null unless the task waits and live workers, and no nodes, can run it. */
function readWorkers(
  db: SqliteDatabase,
  { seq, tenant, agent, state }: TaskRecord,
): TaskSituation["workers"] {
  if (!(WAITING_STATES as readonly TaskState[]).includes(state)) return null;
  const line = db.prepare<number>("select line from task where seq = ?").pluck().get(seq);
  if (line === undefined || !isForWorkers(db, line)) return null;
  const row = db
    .prepare<NonNullable<TaskSituation["workers"]>>(
      `select count(*) as count, coalesce(sum(slots), 0) as slots,
              coalesce(sum((select count(*) from lease l where l.node = w.id)), 0) as held
         from worker w where w.draining = 0 and w.id in (
           select worker from worker_agent where tenant = ? and agent in (select value from json_each(?)))`,
    )
    .get(tenant, JSON.stringify([agent, ALL_AGENTS]));
  return row ?? null;
}

interface NoExecutorRow {
  readonly since: number | null;
  readonly node_at: number | null;
  readonly worker_at: number | null;
  readonly id: number;
  readonly kind: AgentQueueKind;
}

/** Null unless the tenant has reached its share of the lane: over all nodes, or on every node with a free slot. */
export function readLaneShare(
  db: SqliteDatabase,
  { lane: name, tenant }: Pick<TaskRecord, "lane" | "tenant">,
): TaskSituation["laneShare"] {
  const overall = db
    .prepare<{ inflight: number; max: number }>(
      `select inflight, lane_max as max from tenant_line
        where lane = ? and tenant = ? and inflight >= lane_max`,
    )
    .get(name, tenant);
  if (overall !== undefined) return overall;
  const lane = db.prepare<LaneRow>("select * from lane where name = ? and second_tenant = 1").get(name);
  if (lane === undefined) return null;
  const shares = new NodeShares(db, lane);
  const free = shares.nodes.filter((node) => node.free > 0);
  if (free.length === 0 || shares.freeFor(tenant) > 0) return null;
  const max = free.reduce((sum, { perTenant }) => sum + (perTenant ?? 0), 0);
  return { inflight: max - free.reduce((sum, node) => sum + shares.roomOn(node, tenant), 0), max };
}

/** Null unless the task waits to run alone. */
function readAlone(db: SqliteDatabase, { seq, state }: TaskRecord): TaskSituation["alone"] {
  if (!(WAITING_STATES as readonly TaskState[]).includes(state)) return null;
  const row = db
    .prepare<{ losses: number }>(
      `select t.losses from task t join line on line.id = t.line where t.seq = ? and ${IS_ALONE}`,
    )
    .get(seq);
  return row ?? null;
}

/** Null unless its batch holds the task back. */
function readBatch(db: SqliteDatabase, { seq, batch }: TaskRecord): TaskSituation["batch"] {
  if (batch === null) return null;
  const holder = db
    .prepare<{ parallelism: number }>(
      `select b.parallelism from task t join batch b on b.id = t.batch where t.seq = ? and t.parked = 'batch'`,
    )
    .get(seq);
  if (holder === undefined) return null;
  const active = db
    .prepare<{ id: string }>(
      `select id from task where batch = ? and resting_state = 'queued' and parked is null order by seq limit +?`,
    )
    .all(batch, AHEAD_MAX.named);
  return { parallelism: holder.parallelism, active: active.map(({ id }) => id) };
}

/** Null unless its session holds the task back. */
function readSession(db: SqliteDatabase, { seq, session: key }: TaskRecord): TaskSituation["session"] {
  if (key === null) return null;
  const session = db
    .prepare<SessionRow & { taken_by: string | null; steer_until: number | null }>(
      `select s.*, t.steer_until, (select k.id from task k where k.seq = t.taken_by) as taken_by
         from task t join session s on s.id = t.session where t.seq = ? and t.parked = 'session'`,
    )
    .get(seq);
  if (session === undefined) return null;
  const active = db
    .prepare<{ id: string }>(
      "select id from task where session = ? and in_session = 1 order by place limit +?",
    )
    .all(session.id, AHEAD_MAX.named);
  return {
    key,
    max: maxOf(session),
    active: active.map(({ id }) => id),
    takenBy: session.taken_by,
    offeredUntil: session.steer_until,
  };
}

/** Null unless the task waits for its concurrency key. */
function readKey(db: SqliteDatabase, { seq, concurrencyKey: name }: TaskRecord): TaskSituation["key"] {
  if (name === null) return null;
  const holder = db
    .prepare<{ id: string }>(
      `select o.id from task t join key_hold h on h.tenant = t.tenant and h.key = t.concurrency_key
         join task o on o.seq = h.task_seq where t.seq = ? and t.parked = 'key'`,
    )
    .get(seq);
  return holder === undefined ? null : { name, holder: holder.id };
}

interface Limits {
  readonly lane_inflight: number;
  readonly total: number | null;
  readonly per_agent: number | null;
  readonly tenant_disabled: 0 | 1;
  readonly tenant_inflight: number;
  readonly tenant_max: number | null;
  readonly inflight: number;
  readonly agent_inflight: number;
  readonly agent_max: number | null;
}

const LIMITS = `
  select l.inflight as lane_inflight, l.total, l.per_agent, n.agent_max,
         (select sum(s.inflight) from line s where s.tenant = n.tenant and s.agent = n.agent and s.lane = n.lane) as inflight,
         o.disabled as tenant_disabled, o.max_inflight as tenant_max,
         (select sum(s.inflight) from tenant_line s where s.tenant = n.tenant) as tenant_inflight,
         (select sum(s.inflight) from line s where s.tenant = n.tenant and s.agent = n.agent) as agent_inflight
    from task t join line n on n.id = t.line join lane l on l.name = n.lane
    join tenant_line o on o.tenant = n.tenant and o.lane = n.lane where t.seq = ?`;

/** Tasks of the same agent queue ahead of a ready task. */
const BEFORE = `
    from task t join ready own on own.line = t.line and own.rank = t.rank and own.task_seq = t.seq
    join ready r on r.line = own.line and (r.rank, r.task_seq) < (own.rank, own.task_seq)`;

/** Tasks ahead of one that waits for its concurrency key. */
const BEFORE_FOR_KEY = `
    from task t join (select tenant, concurrency_key, rank, seq as task_seq from task indexed by task_waiting_for_key
                       where parked = 'key') r
      on r.tenant = t.tenant and r.concurrency_key = t.concurrency_key and (r.rank, r.task_seq) < (t.rank, t.seq)`;

function namesAhead(before: string): string {
  return `
    select (select a.id from task a where a.seq = r.task_seq) as id ${before}
     where t.seq = @seq order by r.rank, r.task_seq limit +@limit`;
}

function countAhead(before: string): string {
  return `select count(*) as count from (select 1 ${before} where t.seq = @seq limit +@limit)`;
}

const PARENTS = `
  select p.id, coalesce(l.state, p.resting_state) as state
    from dependency d join task p on p.seq = d.parent_seq left join lease l on l.task_seq = p.seq
   where d.child_seq = ? order by p.seq`;
