import type { CounterFault } from "../storage.ts";
import { roomOf } from "./counters.ts";
import type { PostgresDatabase } from "./database.ts";
import { maxOf } from "./settle-sessions.ts";
import { tenantRoom } from "./share-out.ts";

/** Counting more than this would hold up everybody else for what is a precaution. */
const RECOUNTED_TASKS_MAX = 10_000;

interface FaultRow {
  readonly counter: string;
  readonly stored: string | null;
  readonly counted: string | null;
}

/** Recounts one line, and mends it and its lane if it is off. */
export async function recountOne(db: PostgresDatabase, params: { random: number }): Promise<CounterFault[]> {
  const rows = await db.write<FaultRow>({
    name: "recount_one",
    text: "select * from recount_one($1, $2, $3)",
    values: [params.random, RECOUNTED_TASKS_MAX],
  });
  return rows.map(toFault);
}

/** Recounts everything and changes nothing. */
export async function recountAll(db: PostgresDatabase): Promise<CounterFault[]> {
  const rows = await db.read<FaultRow>({ text: RECOUNT_ALL, values: [] });
  return rows.map(toFault);
}

function toFault({ counter, stored, counted }: FaultRow): CounterFault {
  return { counter, stored: toNumber(stored), counted: toNumber(counted) };
}

function toNumber(value: string | null): number | null {
  return value === null ? null : Number(value);
}

/** What its batch, its session or its key holds back. */
const PARKED = `
  select line, seq from task where parked is not null
  union all select t.line, t.seq from turn u join task t on t.seq = u.task_seq where u.stage = 'parked'`;

export const RECOUNT_FUNCTIONS = `
-- What the rows say about lines, beside what the lines say.
create function count_lines(p_lines bigint[]) returns table (
  id bigint, name text, lane text, column_name text, stored bigint, counted bigint) language sql stable as $$
  select n.id, 'line ' || n.lane || '/' || n.tenant || '/' || n.agent, n.lane, c.*
    from line n
    join lane l on l.name = n.lane
    left join (select line, count(*) as tasks from ready where line = any (p_lines) group by line) r on r.line = n.id
    left join (select line, count(*) as tasks from lease where line = any (p_lines) group by line) h on h.line = n.id
    left join (select line, count(*) as tasks from task
                where listed_state in ('waiting_dependency', 'delayed') and line = any (p_lines) group by line) e
           on e.line = n.id
    left join (select line, count(*) as tasks from (${PARKED}) t where line = any (p_lines) group by line) p on p.line = n.id
    left join (select line, count(*) as tasks
                 from (select r.line, r.task_seq from ready r
                       union all select line, seq from task where listed_state in ('waiting_dependency', 'delayed')
                       union all select line, seq from (${PARKED}) t) w
                where line = any (p_lines) and (select t.origin from task t where t.seq = w.task_seq) is not null
                group by line) x on x.line = n.id
    left join lateral (select rank, task_seq from ready where line = n.id order by rank, task_seq limit 1) f on true
   cross join lateral (values
     ('waiting', n.waiting::bigint, coalesce(r.tasks, 0) + coalesce(e.tasks, 0) + coalesce(p.tasks, 0)),
     ('exempt', n.exempt, coalesce(x.tasks, 0)),
     ('parked', n.parked, coalesce(p.tasks, 0)),
     ('ready', n.ready, coalesce(r.tasks, 0)),
     ('inflight', n.inflight, coalesce(h.tasks, 0)),
     ('head_rank', n.head_rank, f.rank),
     ('head_seq', n.head_seq, f.task_seq),
     ('room', n.room, greatest(${roomOf("n", "l.per_agent")}, 0)),
     ('ahead', n.ahead::integer,
      (n.head_rank is not null and (n.head_rank <= 0 or l.strategy = 'priority-fifo'))::integer)) c
   where n.id = any (p_lines)
$$;

create function recount_one(p_now bigint, p_random float8, p_tasks_max bigint)
returns table (counter text, stored bigint, counted bigint) language plpgsql as $$
#variable_conflict use_column
declare
  v_line bigint;
begin
  perform enter(p_now);
  if (select coalesce(sum(tasks), 0) from tally where state in ('waiting_dependency', 'delayed'))
     + (select coalesce(sum(parked), 0) from line) > p_tasks_max then
    return;
  end if;
  select id into v_line from line
   where id >= ceil(p_random * (select max(id) from line)) and waiting + inflight <= p_tasks_max order by id limit 1;
  return query
    select c.name || ' ' || c.column_name, c.stored, c.counted
      from count_lines(array[v_line]) c where c.stored is distinct from c.counted;
  if not found then
    return query select * from recount_tenant(v_line, p_tasks_max);
    return;
  end if;
  update lane l
     set waiting = l.waiting + c.waiting, exempt = l.exempt + c.exempt, inflight = l.inflight + c.inflight
    from (select lane, sum(counted - stored) filter (where column_name = 'waiting') as waiting,
                 sum(counted - stored) filter (where column_name = 'exempt') as exempt,
                 sum(counted - stored) filter (where column_name = 'inflight') as inflight
            from count_lines(array[v_line]) group by lane) c
   where l.name = c.lane;
  update line n
     set (waiting, exempt, parked, ready, inflight, head_rank, head_seq) = (
           select max(counted) filter (where column_name = 'waiting'),
                  max(counted) filter (where column_name = 'exempt'),
                  max(counted) filter (where column_name = 'parked'),
                  max(counted) filter (where column_name = 'ready'),
                  max(counted) filter (where column_name = 'inflight'),
                  max(counted) filter (where column_name = 'head_rank'),
                  max(counted) filter (where column_name = 'head_seq')
             from count_lines(array[v_line])),
         room = 0, startable = false
   where n.id = v_line;
  perform refresh_startable(array(
    select s.id from line n join line s on s.tenant = n.tenant and s.agent = n.agent where n.id = v_line));
  return query select * from recount_tenant(v_line, 9e18::bigint);
end $$;

-- What the lines of tenants say about them, beside what they say.
create function count_tenants(p_ids bigint[]) returns table (
  id bigint, name text, column_name text, stored bigint, counted bigint) language sql stable as $$
  select t.id, 'tenant ' || t.lane || '/' || t.tenant, c.*
    from tenant_line t
    left join tenant o on o.id = t.tenant
    left join lateral (
      select sum(n.waiting) as waiting, sum(n.exempt) as exempt, sum(n.inflight) as inflight, sum(n.room) as supply,
             count(*) filter (where n.startable and n.ahead) as urgent_lines
        from line n where n.tenant = t.tenant and n.lane = t.lane) n on true
   cross join lateral (values
     ('waiting', t.waiting::bigint, coalesce(n.waiting, 0)),
     ('exempt', t.exempt, coalesce(n.exempt, 0)),
     ('inflight', t.inflight, coalesce(n.inflight, 0)),
     ('supply', t.supply, coalesce(n.supply, 0)),
     ('urgent_lines', t.urgent_lines, coalesce(n.urgent_lines, 0)),
     ('max_inflight', t.max_inflight, o.max_inflight),
     ('crowded', t.crowded::integer, (select l.crowded::integer from lane l where l.name = t.lane)),
     ('disabled', t.disabled::integer, coalesce(o.disabled, false)::integer),
     ('turn_unowed', t.turn_unowed::integer, case when t.crowded and t.startable then (t.owed = 0)::integer end),
     ('turn_inflight', t.turn_inflight, case when t.crowded and t.startable then t.inflight end),
     ('turn_served', t.turn_served, case when t.crowded and t.startable then t.last_served end),
     ('startable', t.startable::integer, (not t.disabled and ${tenantRoom("t")} > 0)::integer)) c
   where t.id = any (p_ids)
$$;

-- Recounts the tenant of a line, and mends it if it is off; not one of so many agents that it would hold up the rest.
create function recount_tenant(p_line bigint, p_lines_max bigint)
returns table (counter text, stored bigint, counted bigint) language plpgsql as $$
#variable_conflict use_column
declare
  v_own tenant_line;
begin
  select t.* into v_own from line n join tenant_line t on t.tenant = n.tenant and t.lane = n.lane where n.id = p_line;
  if (select count(*) from (select 1 from line where tenant = v_own.tenant limit p_lines_max) n) >= p_lines_max then
    return;
  end if;
  return query
    select c.name || ' ' || c.column_name, c.stored, c.counted
      from count_tenants(array[v_own.id]) c where c.stored is distinct from c.counted;
  if not found then return; end if;
  update tenant_line t
     set (waiting, exempt, inflight, supply, urgent_lines) = (
           select max(counted) filter (where column_name = 'waiting'),
                  max(counted) filter (where column_name = 'exempt'),
                  max(counted) filter (where column_name = 'inflight'),
                  max(counted) filter (where column_name = 'supply'),
                  max(counted) filter (where column_name = 'urgent_lines')
             from count_tenants(array[v_own.id])),
         startable = false
   where t.id = v_own.id;
  perform refresh_tenants(array[v_own.tenant]);
end $$;
`;

const RECOUNT_ALL = `
select name || ' ' || column_name as counter, stored, counted
  from count_lines(array(select id from line)) where stored is distinct from counted
union all
select 'lane ' || l.name || ' ' || c.name, c.stored, c.counted
  from lane l
 cross join lateral (values
   ('waiting', l.waiting, (select coalesce(sum(waiting), 0) from line where lane = l.name)),
   ('exempt', l.exempt, (select coalesce(sum(exempt), 0) from line where lane = l.name)),
   ('tenants', l.tenants, (select count(*) from tenant_line where lane = l.name)),
   ('inflight', l.inflight, (select coalesce(sum(inflight), 0) from line where lane = l.name))) c(name, stored, counted)
 where c.stored <> c.counted
union all
select name || ' ' || column_name, stored, counted
  from count_tenants(array(select id from tenant_line)) where stored is distinct from counted
union all
select 'tenants without lines, and lines without tenants', wrong, 0
  from (select (select count(*) from tenant_line t where not exists (select 1 from line n where n.tenant = t.tenant))
             + (select count(*) from line n
                 where not exists (select 1 from tenant_line t where t.tenant = n.tenant and t.lane = n.lane)) as wrong) w
 where wrong > 0
union all
select 'tally ' || tenant || ' ' || state, sum(stored), sum(counted)
  from (select tenant, state, tasks as stored, 0 as counted from tally
        union all select tenant, resting_state, 0, count(*) from task group by tenant, resting_state) t
 group by tenant, state having sum(stored) <> sum(counted)
union all
-- A ready task that is not queued, or a queued one that is neither ready nor held nor parked.
select 'queued tasks that are ready, held or parked', placed, queued
  from (select (select count(*) from ready r join task t
                    on t.seq = r.task_seq and t.line = r.line and t.rank = r.rank and t.resting_state = 'queued'
                   and t.parked is null)
             + (select count(*) from lease l join task t
                    on t.seq = l.task_seq and t.resting_state = 'queued' and t.parked is null)
             + (select count(*) from (${PARKED}) p) as placed,
               (select count(*) from task where resting_state = 'queued') as queued) q
 where placed <> queued
union all
select 'batch ' || b.id || ' ' || c.name, c.stored, c.counted
  from batch b
  left join (select t.batch, count(*) filter (where t.resting_state = 'queued' and t.parked is null and u.place is null) as active,
                    count(*) filter (where t.completed_at is null) as open,
                    count(*) filter (where t.parked = 'batch') as parked
               from task t left join turn u on u.session = t.session and u.stage = 'parked' and u.place = t.place
              where t.batch is not null group by t.batch) t on t.batch = b.id
 cross join lateral (values
   ('active', b.active, coalesce(t.active, 0)),
   ('open', b.open, coalesce(t.open, 0)),
   ('parked beside room', case when b.active < b.parallelism then t.parked else 0 end, 0),
   ('over and untold', case when b.completed_at is null and t.open = 0 then 1 else 0 end, 0)) c(name, stored, counted)
 where c.stored <> c.counted
union all
select 'session ' || s.tenant || '/' || s.key || ' ' || c.name, c.stored, c.counted
  from session s
  left join (select session, count(*) filter (where stage = 'in') as active, count(*) filter (where stage = 'parked') as parked,
                    count(*) as open, count(*) filter (where is_message) as messages, max(place) as last_place,
                    min(place) filter (where stage = 'parked') as first_parked
               from turn group by session) u on u.session = s.id
 cross join lateral (values
   ('active', s.active, coalesce(u.active, 0)),
   ('parked', s.parked, coalesce(u.parked, 0)),
   ('open', s.open, coalesce(u.open, 0)),
   ('messages', s.messages, coalesce(u.messages, 0)),
   ('last_place', greatest(s.last_place, u.last_place), s.last_place),
   ('first_parked', least(s.first_parked, u.first_parked), s.first_parked),
   ('unsettled', case when s.parked > 0 and (s.active < ${maxOf("s")} or s.first_parked <= s.cutoff) then 1 else 0 end, 0))
   c(name, stored, counted)
 where c.stored <> c.counted
union all
-- Every task of a session that has not ended has the turn that it should have, and no other task has one.
select 'turns', count(*) filter (where right_one), count(*)
  from (select u.is_message = coalesce(t.origin = 'message', false) and case u.stage
                 when 'early' then t.resting_state in ('waiting_dependency', 'delayed')
                 when 'parked' then t.resting_state = 'queued' and t.parked is null
                 else t.resting_state in ('queued', 'delayed') end as right_one
          from (select * from task where session is not null and completed_at is null) t
          full join turn u on u.task_seq = t.seq and u.session = t.session and u.place = t.place) f
having count(*) filter (where right_one) <> count(*)
union all
select 'schedule ' || s.id || ' open_runs', s.open_runs, coalesce(r.runs, 0)
  from schedule s
  left join (select schedule, count(*) as runs from run where status = 'running' group by schedule) r on r.schedule = s.id
 where s.open_runs <> coalesce(r.runs, 0)
union all
-- A run goes as long as its task does.
select 'runs whose tasks go', count(*) filter (where t.completed_at is null and t.seq is not null), count(*)
  from run r left join task t on t.id = r.task_id where r.status = 'running'
having count(*) filter (where t.completed_at is null and t.seq is not null) <> count(*)
union all
-- Who has a key is ready or in flight, and alone; and nobody waits for a key that is free, or that a claim does not look at.
select 'concurrency keys: ' || what, wrong, 0
  from (select 'holders that are neither ready nor in flight with that key' as what, count(*) as wrong
          from key_hold h
          left join task t on t.seq = h.task_seq and t.resting_state = 'queued' and t.parked is null
                          and t.tenant = h.tenant and t.concurrency_key = h.key
          left join ready r on r.line = t.line and r.rank = t.rank and r.task_seq = t.seq
          left join lease l on l.task_seq = t.seq
         where r.task_seq is null and l.task_seq is null
        union all
        select 'tasks that are ready or in flight without having their key', count(*)
          from (select task_seq from ready union all select task_seq from lease) a
          join task t on t.seq = a.task_seq and t.concurrency_key is not null
          left join key_hold h on h.tenant = t.tenant and h.key = t.concurrency_key and h.task_seq = t.seq
         where h.task_seq is null
        union all
        select 'tasks that wait for a key that is free, or that a claim does not look at', count(*)
          from task t left join key_hold h on h.tenant = t.tenant and h.key = t.concurrency_key
          left join task o on o.seq = h.task_seq
         where t.parked = 'asking' or (t.parked = 'key' and (h.task_seq is null or (not h.contested and o.line <> t.line)))) k
 where wrong > 0
union all
select 'sessions of leases', count(*) filter (where l.session is not distinct from t.session), count(*)
  from lease l join task t on t.seq = l.task_seq
having count(*) filter (where l.session is not distinct from t.session) <> count(*)
union all
-- Which attempts may be taken stands on their leases.
select 'leases that may be taken', stored, counted
  from (select count(l.priority) as stored, count(*) filter (where t.priority > 0 and t.preemptions_left > 0) as counted,
               count(*) filter (where (l.priority is not null) <> (t.priority > 0 and t.preemptions_left > 0)
                                   or l.priority <> t.priority or l.lane <> n.lane or l.tenant <> t.tenant) as wrong
          from lease l join task t on t.seq = l.task_seq join line n on n.id = t.line) f
 where wrong > 0`;
