import type { CounterFault } from "../storage.ts";
import { roomOf } from "./counters.ts";
import type { PostgresDatabase } from "./database.ts";

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

export const RECOUNT_FUNCTIONS = `
-- What the rows say about lines, beside what the lines say.
create function count_lines(p_lines bigint[]) returns table (
  id bigint, name text, lane text, column_name text, stored bigint, counted bigint) language sql stable as $$
  select n.id, 'line ' || n.lane || '/' || n.tenant || '/' || n.agent, n.lane, c.*
    from line n
    join lane l on l.name = n.lane
    left join (select line, count(*) as tasks from ready where line = any (p_lines) group by line) r on r.line = n.id
    left join (select line, count(*) as tasks from lease where line = any (p_lines) group by line) h on h.line = n.id
    left join (select line, count(*) as tasks
                 from (select line from task where listed_state in ('waiting_dependency', 'delayed')
                       union all select line from task where parked is not null) t
                where line = any (p_lines) group by line) p on p.line = n.id
    left join lateral (select rank, task_seq from ready where line = n.id order by rank, task_seq limit 1) f on true
   cross join lateral (values
     ('waiting', n.waiting::bigint, coalesce(r.tasks, 0) + coalesce(p.tasks, 0)),
     ('ready', n.ready, coalesce(r.tasks, 0)),
     ('inflight', n.inflight, coalesce(h.tasks, 0)),
     ('head_rank', n.head_rank, f.rank),
     ('head_seq', n.head_seq, f.task_seq),
     ('startable', n.startable::integer, (coalesce(${roomOf("n", "l.per_agent")}, 0) > 0)::integer),
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
     + (select count(*) from (select 1 from task where parked is not null limit p_tasks_max + 1) p) > p_tasks_max then
    return;
  end if;
  select id into v_line from line
   where id >= ceil(p_random * (select max(id) from line)) and waiting + inflight <= p_tasks_max order by id limit 1;
  return query
    select c.name || ' ' || c.column_name, c.stored, c.counted
      from count_lines(array[v_line]) c where c.stored is distinct from c.counted;
  if not found then return; end if;
  update lane l set waiting = l.waiting + w.counted - w.stored, inflight = l.inflight + i.counted - i.stored
    from count_lines(array[v_line]) w, count_lines(array[v_line]) i
   where l.name = w.lane and w.column_name = 'waiting' and i.column_name = 'inflight';
  update line n
     set (waiting, ready, inflight, head_rank, head_seq) = (
           select max(counted) filter (where column_name = 'waiting'),
                  max(counted) filter (where column_name = 'ready'),
                  max(counted) filter (where column_name = 'inflight'),
                  max(counted) filter (where column_name = 'head_rank'),
                  max(counted) filter (where column_name = 'head_seq')
             from count_lines(array[v_line])),
         startable = false
   where n.id = v_line;
  perform refresh_startable(array[v_line]);
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
   ('inflight', l.inflight, (select coalesce(sum(inflight), 0) from line where lane = l.name))) c(name, stored, counted)
 where c.stored <> c.counted
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
             + (select count(*) from task where parked is not null) as placed,
               (select count(*) from task where resting_state = 'queued') as queued) q
 where placed <> queued
union all
select 'batch ' || b.id || ' ' || c.name, c.stored, c.counted
  from batch b
  left join (select batch, count(*) filter (where resting_state = 'queued' and parked is null) as active,
                    count(*) filter (where completed_at is null) as open, count(parked) as parked
               from task where batch is not null group by batch) t on t.batch = b.id
 cross join lateral (values
   ('active', b.active, coalesce(t.active, 0)),
   ('open', b.open, coalesce(t.open, 0)),
   ('parked beside room', case when b.active < b.parallelism then t.parked else 0 end, 0),
   ('over and untold', case when b.completed_at is null and t.open = 0 then 1 else 0 end, 0)) c(name, stored, counted)
 where c.stored <> c.counted
union all
-- Which attempts may be taken stands on their leases.
select 'leases that may be taken', stored, counted
  from (select count(l.priority) as stored, count(*) filter (where t.priority > 0 and t.preemptions_left > 0) as counted,
               count(*) filter (where (l.priority is not null) <> (t.priority > 0 and t.preemptions_left > 0)
                                   or l.priority <> t.priority or l.lane <> n.lane or l.tenant <> t.tenant) as wrong
          from lease l join task t on t.seq = l.task_seq join line n on n.id = t.line) f
 where wrong > 0`;
