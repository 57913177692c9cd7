import type { Strategy } from "../../../model/lane.ts";
import { FRONT_RANK } from "../../../model/priority.ts";
import type { LaneSetting, LaneStorage } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { cleanText } from "../connection/text.ts";
import { type CancelledJson, signalCancelled, toEndedTask } from "../tasks/cancel-open-tasks.ts";
import { PREEMPT } from "../tasks/preempt-tasks.ts";
import { RANK_IN_ITS_LANE } from "../tasks/rank.ts";
import { RELEASED_MAX } from "../tasks/settle-moves.ts";

export function postgresLanes(db: PostgresDatabase): LaneStorage {
  return {
    async configure({ lanes }) {
      const rows = lanes.map(({ name, total, perAgent, perTenant, strategy, agingMs }) => ({
        name,
        total,
        per_agent: perAgent,
        per_tenant: perTenant,
        strategy,
        aging_ms: agingMs,
      }));
      await db.write({
        name: "configure_lanes",
        text: "select configure_lanes($1, $2)",
        values: [JSON.stringify(rows)],
      });
      db.signal({ kind: "work" });
    },
    async list() {
      const rows = await db.read<{
        name: string;
        total: number | null;
        per_agent: number | null;
        per_tenant: number | null;
        strategy: Strategy;
        aging_ms: string;
        waiting: number;
        inflight: number;
        running: number;
        oldest_at: string | null;
      }>({
        name: "list_lanes",
        text: `select l.name, l.total, l.per_agent, l.per_tenant, l.strategy, l.aging_ms, l.waiting, l.inflight,
                      coalesce(h.running, 0) as running, t.created_at as oldest_at
                 from lane l left join oldest_ready() o on o.lane = l.name left join task t on t.seq = o.task_seq
                 left join (select lane, count(*)::integer as running from lease where state = 'running' group by lane) h
                   on h.lane = l.name
                order by l.name`,
        values: [],
      });
      return rows.map(
        ({
          per_agent: perAgent,
          per_tenant: perTenant,
          aging_ms: agingMs,
          oldest_at: oldestAt,
          ...lane
        }) => ({
          ...lane,
          perAgent,
          perTenant,
          agingMs: Number(agingMs),
          oldestAt: oldestAt === null ? null : Number(oldestAt),
        }),
      );
    },
    async put({ name, concurrency, total }) {
      await db.write({
        name: "put_lane",
        text: "select put_lane($1, $2, $3, $4)",
        values: [name, concurrency, total],
      });
      db.signal({ kind: "lanes" });
    },
    async settings() {
      return db.read<LaneSetting>({
        name: "lane_settings",
        text: "select name, concurrency, total from lane_setting order by name",
        values: [],
      });
    },
    async clear({ tenant, name, error, limit, cutoff = null }) {
      const [row] = await db.write<{ cancelled: CancelledJson[]; more: boolean; cutoff: string }>({
        name: "clear_lane",
        text: "select * from clear_lane($1, $2, $3, $4, $5, $6)",
        values: [tenant, name, cleanText(error), limit, cutoff],
      });
      if (row === undefined) throw new Error("clearing a lane has an answer");
      signalCancelled(db, row.cancelled);
      return { cancelled: row.cancelled.map(toEndedTask), more: row.more, cutoff: Number(row.cutoff) };
    },
  };
}

/**
 * How many entries of the ready set are read to find the oldest: one for each agent queue and rank, because the first of equal
 * rank is the oldest. With ageing nearly every task has a rank of its own. Then only the first entries of an agent queue count.
 */
const LOOKED = { queues: 10_000, entries: 10_000, perQueueMin: 4 } as const;

/** A changed limit changes which agent queues can start something. Changed ageing changes their order. */
export const LANE_FUNCTIONS = `
create function configure_lanes(p_now bigint, p_lanes json) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_reordered text[];
begin
  v_reordered := array(
    select l.name from lane l join json_to_recordset(p_lanes) as j(name text, aging_ms bigint) on j.name = l.name
     where l.aging_ms <> j.aging_ms);
  insert into lane (name, total, per_agent, per_tenant, strategy, aging_ms)
  select * from json_to_recordset(p_lanes)
                  as j(name text, total integer, per_agent integer, per_tenant integer, strategy text, aging_ms bigint)
  on conflict (name) do update
    set total = excluded.total, per_agent = excluded.per_agent, per_tenant = excluded.per_tenant,
        strategy = excluded.strategy, aging_ms = excluded.aging_ms;
  perform apply_second_tenant();
  perform apply_lane_max(array(select j.name from json_to_recordset(p_lanes) as j(name text)));
  if cardinality(v_reordered) > 0 then perform rerank_lanes(v_reordered); end if;
  perform refresh_startable(array(
    select n.id from line n join json_to_recordset(p_lanes) as j(name text) on j.name = n.lane));
  perform defer_work('lanes_to_recheck', array(select j.name from json_to_recordset(p_lanes) as j(name text)));
  ${PREEMPT}
end $$;

-- Computes the ranks of open tasks in these lanes anew; only pre-empted tasks stay in front. The cost grows with the tasks
-- that wait there, and with the delayed, parked and dependent tasks of the same tenants.
create function rerank_lanes(p_lanes text[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_queues bigint[] := array(select id from line where lane = any (p_lanes));
  v_tenants text[] := array(select distinct tenant from line where lane = any (p_lanes));
  v_ready bigint[];
begin
  with gone as (delete from ready where line = any (v_queues) and rank <> ${FRONT_RANK} returning task_seq)
  select coalesce(array_agg(task_seq), '{}') into v_ready from gone;
  update task t set rank = ${RANK_IN_ITS_LANE}
   where t.rank <> ${FRONT_RANK} and t.line = any (v_queues) and t.seq in (
     select unnest(v_ready)
     union all select task_seq from lease where line = any (v_queues)
     union all select seq from task where tenant = any (v_tenants) and parked is not null
     union all select u.task_seq from session s join turn u on u.session = s.id and u.stage = 'parked'
                where s.tenant || '' = any (v_tenants) and s.parked > 0
     union all select seq from task
                where tenant = any (v_tenants) and listed_state in ('waiting_dependency', 'delayed'));
  insert into ready (line, rank, task_seq) select line, rank, seq from task where seq = any (v_ready);
  update line n
     set (head_rank, head_seq) = (
           select r.rank, r.task_seq from ready r where r.line = n.id order by r.rank, r.task_seq limit 1)
   where n.id = any (v_queues) and n.ready > 0;
end $$;

create function put_lane(p_now bigint, p_name text, p_concurrency integer, p_total integer) returns void
language plpgsql as $$
begin
  perform take_write_lock(p_now);
  insert into lane_setting (name, concurrency, total) values (p_name, p_concurrency, p_total)
  on conflict (name) do update set concurrency = excluded.concurrency, total = excluded.total;
end $$;

-- For each lane, the ready task that has waited longest. Each agent queue knows its first task; from there it steps from rank to
-- rank and skips what lies between. Looking for the first task in the index of ready would read all entries of tasks that
-- have started since the last vacuum.
create function oldest_ready() returns table (lane text, task_seq bigint) language plpgsql stable as $$
#variable_conflict use_column
declare
  v_queues bigint[] := array(select id from line where ready > 0 limit ${LOOKED.queues});
begin
  return query
    select q.lane, min(first.task_seq)
      from line q
     cross join lateral (
       with recursive ready_rank as (
         select q.head_rank as rank, q.head_seq as task_seq, 1 as n
         union all
         select next.rank, next.task_seq, p.n + 1 from ready_rank p
          cross join lateral (
            select r.rank, r.task_seq from ready r where r.line = q.id and r.rank > p.rank
             order by r.rank, r.task_seq limit 1) next
          where p.n < greatest(${LOOKED.entries} / cardinality(v_queues), ${LOOKED.perQueueMin}))
       select min(task_seq) as task_seq from ready_rank) first
     where q.id = any (v_queues)
     group by q.lane;
end $$;

create function clear_lane(
  p_now bigint, p_tenant text, p_name text, p_error text, p_limit integer, p_cutoff bigint)
returns table (cancelled json, more boolean, cutoff bigint) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_queues bigint[] := array(select n.id from line n where n.tenant = p_tenant and n.lane = p_name);
  v_cutoff bigint := coalesce(p_cutoff, (select last_value from task_seq));
  v_seqs bigint[];
begin
  v_seqs := array(
    select w.seq
      from ((select r.task_seq as seq from ready r where r.line = any (v_queues))
            union all
            (select t.seq from task t
              where t.tenant = p_tenant and t.listed_state in ('waiting_dependency', 'delayed') and t.line = any (v_queues))
            union all
            (select t.seq from task t where t.tenant = p_tenant and t.parked is not null and t.line = any (v_queues))
            union all
            (select t.seq from session s join turn u on u.session = s.id and u.stage = 'parked' join task t on t.seq = u.task_seq
              where s.tenant || '' = p_tenant and s.parked > 0 and t.line = any (v_queues))) w
     where w.seq <= v_cutoff order by w.seq limit p_limit + 1);
  more := cardinality(v_seqs) > p_limit;
  cutoff := v_cutoff;
  cancelled := cancel_open_tasks(v_now, v_seqs[:p_limit], p_error);
  perform settle_moves(v_now, ${RELEASED_MAX});
  ${PREEMPT}
  return next;
end $$;
`;
