import type { TaskRecord } from "../../../model/task-record.ts";
import { type TaskState, WAITING_STATES } from "../../../model/task-state.ts";
import { AHEAD_MAX, type TaskSituation } from "../../storage.ts";
import { canWorkerRun, isAlone, isExecutable, isForWorkers, isWorkerAgent } from "../connection/abilities.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { maxOf } from "../sessions/settle-sessions.ts";
import { getTask } from "./read-tasks.ts";

/** What keeps a task from starting. */
export async function readSituation(
  db: PostgresDatabase,
  params: { tenant: string; id: string },
): Promise<TaskSituation | null> {
  const task = await getTask(db, params);
  if (task === null) return null;
  const [row] = await db.readDurably<SituationRow>({
    name: "read_situation",
    text: SITUATION,
    values: [task.seq, AHEAD_MAX.named, AHEAD_MAX.counted],
  });
  if (row === undefined) return null;
  return {
    task,
    lane: { inflight: row.lane_inflight, total: row.total, perAgent: row.per_agent },
    tenant: {
      disabled: row.tenant_disabled,
      inflight: Number(row.tenant_inflight),
      max: row.tenant_max,
    },
    laneShare: row.lane_share,
    agent: { inLane: row.inflight, inflight: Number(row.agent_inflight), max: row.agent_max },
    ahead: { ids: row.ahead, count: Number(row.ahead_count) },
    batch: row.parallelism === null ? null : { parallelism: row.parallelism, active: row.active },
    session:
      row.session_max === null || task.session === null
        ? null
        : { key: task.session, max: row.session_max, active: row.admitted, ...row.steered },
    noExecutor: row.no_executor === null || !isWaiting(task) ? null : row.no_executor,
    workers: isWaiting(task) ? row.workers : null,
    alone: row.losses === null || !isWaiting(task) ? null : { losses: row.losses },
    key:
      row.key_holder === null || task.concurrencyKey === null
        ? null
        : { name: task.concurrencyKey, holder: row.key_holder },
    parents: row.parents,
  };
}

function isWaiting({ state }: TaskRecord): boolean {
  return (WAITING_STATES as readonly TaskState[]).includes(state);
}

interface SituationRow {
  readonly lane_inflight: number;
  readonly total: number | null;
  readonly per_agent: number | null;
  readonly tenant_disabled: boolean;
  readonly tenant_inflight: string;
  readonly tenant_max: number | null;
  readonly lane_share: TaskSituation["laneShare"];
  readonly inflight: number;
  readonly agent_inflight: string;
  readonly agent_max: number | null;
  readonly ahead: string[];
  readonly ahead_count: string;
  /** Null unless its batch parks it. */
  readonly parallelism: number | null;
  readonly active: string[];
  /** Null unless its session parks it. */
  readonly session_max: number | null;
  readonly admitted: string[];
  readonly steered: Pick<NonNullable<TaskSituation["session"]>, "takenBy" | "offeredUntil">;
  readonly workers: TaskSituation["workers"];
  /** Null when a live node can execute it. */
  readonly no_executor: {
    served: boolean;
    byWorkers: boolean;
    lastSeenAt: number | null;
    since: number | null;
  } | null;
  /** Null unless it runs alone. */
  readonly losses: number | null;
  /** Null unless it waits for its concurrency key. */
  readonly key_holder: string | null;
  readonly parents: { id: string; state: TaskState }[];
}

/** Tasks of the same agent queue ahead of a ready task. */
const BEFORE = `
  from ready own join ready r on r.line = own.line and (r.rank, r.task_seq) < (own.rank, own.task_seq)
 where own.line = t.line and own.rank = t.rank and own.task_seq = t.seq`;

/** Tasks ahead of one that waits for its concurrency key. */
const BEFORE_FOR_KEY = `
  from task w where t.parked = 'key' and w.tenant = t.tenant and w.concurrency_key = t.concurrency_key and w.parked = 'key'
                and (w.rank, w.seq) < (t.rank, t.seq)`;

const SITUATION = `
  select l.inflight as lane_inflight, l.total, l.per_agent, n.agent_max,
         (select sum(s.inflight)::integer from line s where s.tenant = n.tenant and s.agent = n.agent and s.lane = n.lane) as inflight,
         case when not ${isExecutable("n")} then json_build_object(
           'served', n.served, 'byWorkers', ${isWorkerAgent("n")} or coalesce(w.at >= coalesce(a.at, 0), false),
           'lastSeenAt', greatest(a.at, w.at),
           'since', (select at from unserved where task_seq = t.seq)) end as no_executor,
         case when ${isForWorkers("n")} then (
           select json_build_object('count', count(*), 'slots', coalesce(sum(v.slots), 0),
                    'held', coalesce(sum((select count(*) from lease h where h.node = v.id)), 0))
             from worker v where not v.lost and not v.draining and v.tenant = n.tenant and ${canWorkerRun("n", "v.agents")}) end as workers,
         case when ${isAlone("n")} then t.losses end as losses,
         o.disabled as tenant_disabled, o.max_inflight as tenant_max,
         lane_share(n.lane, n.tenant) as lane_share,
         (select sum(s.inflight) from tenant_line s where s.tenant = n.tenant) as tenant_inflight,
         (select sum(s.inflight) from line s where s.tenant = n.tenant and s.agent = n.agent) as agent_inflight,
         array(select (select a.id from task a where a.seq = b.task_seq)
                 from ((select r.rank, r.task_seq ${BEFORE} order by r.rank, r.task_seq limit $2)
                       union all
                       (select w.rank, w.seq ${BEFORE_FOR_KEY} order by w.rank, w.seq limit $2)) b
                order by b.rank, b.task_seq) as ahead,
         (select count(*) from ((select 1 ${BEFORE} limit $3) union all (select 1 ${BEFORE_FOR_KEY} limit $3)) b) as ahead_count,
         (select b.parallelism from batch b where b.id = t.batch and t.parked = 'batch') as parallelism,
         array(select a.id from task a
                where t.parked = 'batch' and a.batch = t.batch and a.resting_state = 'queued' and a.parked is null
                  and (a.session is null or exists (select 1 from turn u
                         where u.session = a.session and u.stage = 'in' and u.place = a.place))
                order by a.seq limit $2) as active,
         (select ${maxOf("s")} from turn u join session s on s.id = u.session
           where u.session = t.session and u.stage = 'parked' and u.place = t.place) as session_max,
         (select json_build_object('takenBy', (select k.id from task k where k.seq = u.taken_by), 'offeredUntil', u.steer_until)
            from turn u where u.session = t.session and u.stage = 'parked' and u.place = t.place) as steered,
         array(select a.id from turn u join task a on a.seq = u.task_seq
                where u.session = t.session and u.stage = 'in' order by u.place limit $2) as admitted,
         (select o.id from key_hold h join task o on o.seq = h.task_seq
           where t.parked = 'key' and h.tenant = t.tenant and h.key = t.concurrency_key) as key_holder,
         coalesce((select json_agg(json_build_object('id', p.id, 'state', coalesce(e.state, p.resting_state)) order by p.seq)
                     from dependency d join task p on p.seq = d.parent_seq left join lease e on e.task_seq = p.seq
                    where d.child_seq = t.seq), '[]') as parents
    from task t join line n on n.id = t.line join lane l on l.name = n.lane
    join tenant_line o on o.tenant = n.tenant and o.lane = n.lane
    left join agent_seen a on a.agent = n.agent
    left join worker_agent_seen w on w.tenant = n.tenant and w.agent = n.agent where t.seq = $1`;
