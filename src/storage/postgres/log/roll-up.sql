-- Counts the next events of the log. A row of the log is counted whole, so the last one may go beyond the limit. If a power
-- failure undoes this, the next node counts again.
create function roll_up(p_now bigint, p_limit integer) returns table (events integer, more boolean) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := coalesce(p_now, floor(extract(epoch from clock_timestamp()) * 1000)::bigint);
  v_from bigint;
  v_last bigint;
  v_events integer;
begin
  set local synchronous_commit = off;
  if not exists (select 1 from high_water where name = 'rollup') then
    insert into high_water (name, value) values ('rollup', 0) on conflict do nothing;
  end if;
  select value into v_from from high_water where name = 'rollup' for update skip locked;
  if not found then return query select 0, true; return; end if;
  with next as (
    select last_seq, count, sum(count) over (order by last_seq) as upto
      from event where last_seq > v_from order by last_seq limit p_limit)
  select max(last_seq), coalesce(sum(count), 0)::integer into v_last, v_events from next where upto - count < p_limit;
  if v_last is null then return query select 0, false; return; end if;

  with row as materialized (
    select e.type, e.at, e.tenant, e.task_seqs, e.count, e.last_seq - e.count as before,
           e.type = 'task.started' and (e.data::json ->> 'attempt')::integer = 1 as is_first_start,
           e.type in ('task.completed', 'task.failed', 'task.cancelled') as is_end
      from event e
     where e.last_seq > v_from and e.last_seq <= v_last
       and e.type in ('task.created', 'task.started', 'task.completed', 'task.failed', 'task.cancelled')),
  known as materialized (
    select e.type, e.at, e.tenant, e.before, t.seq as task_seq, t.line,
           -- After a retry has changed run_at, it is unknown when the task could first start.
           case when e.is_first_start and coalesce(t.run_at, 0) <= e.at
                then greatest(e.at - greatest(t.created_at, coalesce(t.run_at, 0)), 0) end as wait_ms,
           -- The task may have been retried since: then the attempt is an earlier one.
           case when not e.is_end then null
                when t.completed_at = e.at and t.last_started_at is not null then greatest(e.at - t.last_started_at, 0)
                else (select greatest(e.at - a.started_at, 0) from attempt a
                       where a.task_seq = t.seq and a.ended_at = e.at order by a.number desc limit 1) end as run_ms,
           case when e.is_end then nullif(t.input_tokens + t.output_tokens, 0) end as tokens_so_far
      from row e
      -- Those of a row of the log are found together: most are neighbours in the index.
     cross join lateral (
       select seq, line, run_at, created_at, completed_at, last_started_at, input_tokens, output_tokens
         from task where seq = any (e.task_seqs) offset 0) t),
  -- A task that is done has no later end.
  remembered as (
    insert into counted_tokens (task_seq, tokens)
    select distinct on (k.task_seq) k.task_seq, k.tokens_so_far from known k
     where k.tokens_so_far is not null and k.type <> 'task.completed' order by k.task_seq
    on conflict (task_seq) do update set tokens = excluded.tokens),
  -- Events that are alike become one row first: names are read and histograms are computed for each row.
  alike as materialized (
    select k.tenant, k.at - k.at % 60000 as minute, k.line, k.type, :WAIT_BUCKET as wait_bucket, :RUN_BUCKET as run_bucket,
           count(*)::integer as events, max(k.wait_ms) as wait_ms, max(k.run_ms) as run_ms, 0::bigint as tokens
      from known k group by k.tenant, minute, k.line, k.type, wait_bucket, run_bucket
    union all
    -- Events of tasks that are deleted.
    select m.tenant, m.at - m.at % 60000, null, m.type, null, null, m.missing, null, null, 0
      -- A full join is never done by comparing each with each, whatever numbers of rows the planner expects.
      from (select e.tenant, e.at, e.type, (e.count - coalesce(k.found, 0))::integer as missing
              from row e full join (select before, count(*) as found from known group by before) k on k.before = e.before
            offset 0) m
     where (select sum(count) from row) > (select count(*) from known) and m.missing > 0
       and exists (select 1 from tenant o where o.id = m.tenant offset 0)
    union all
    -- What a task has used counts with its first end here, less what was counted before.
    select f.tenant, f.at - f.at % 60000, f.line, null, null, null, 0, null, null, sum(f.tokens)::bigint
      from (select distinct on (k.task_seq) k.tenant, k.at, k.line, k.tokens_so_far - coalesce(
                     (select d.tokens from counted_tokens d where d.task_seq = k.task_seq), 0) as tokens
              from known k where k.tokens_so_far is not null order by k.task_seq, k.before) f
     group by 1, 2, 3),
  named as materialized (
    select c.*, coalesce(n.lane, ':OTHER_KEYS') as lane, coalesce(n.agent, ':OTHER_KEYS') as agent
      from alike c left join lateral (select lane, agent from line where id = c.line offset 0) n on true),
  -- Where more than :ROLLUP_KEYS_MAX lanes, or agents, would have a row of their own, the quietest join the others. They are found
  -- before histograms are made: thousands of agents would make as many.
  busy as materialized (
    select m.tenant, m.kind, s.step, m.minute - m.minute % (s.step * 1000) as at, m.key, sum(m.events) as events
      from (select tenant, 'lane' collate "C" as kind, minute, lane as key, sum(events)::integer as events from named group by tenant, minute, lane
            union all
            select tenant, 'agent', minute, agent, sum(events)::integer from named group by tenant, minute, agent) m
     cross join (values :STEPS) s(step, kept_ms)
     where abs(v_now - (m.minute - m.minute % (s.step * 1000))) <= s.kept_ms
     group by m.tenant, m.kind, s.step, 4, m.key),
  stored as (
    select r.*
      from (select distinct tenant, kind, step, at from busy) g
     cross join lateral (
       select ctid as address, tenant, kind, step, at, key, submitted + started + done + failed + cancelled as events from rollup
        where tenant = g.tenant and kind = g.kind and step = g.step and at = g.at and key <> ':OTHER_KEYS' offset 0) r),
  ranked as materialized (
    select tenant, kind, step, at, key, r.address, b.events is not null as is_new,
           row_number() over (partition by tenant, kind, step, at
                              order by coalesce(b.events, 0) + coalesce(r.events, 0) desc, key) <= :ROLLUP_KEYS_MAX as kept
      from (select * from busy where key <> ':OTHER_KEYS' offset 0) b full join stored r using (tenant, kind, step, at, key)),
  gone as (
    delete from rollup r where r.ctid = any (array(select q.address from ranked q where q.address is not null and not q.kept))
    returning r.*),
  own as materialized (select distinct tenant, kind, key from ranked where kept and is_new),
  -- Full joins, as above.
  minutes as (
    select c.tenant, c.minute, c.lane, c.agent, :EVENTS
      from (select n.tenant, n.minute, coalesce(l.key, ':OTHER_KEYS') as lane, coalesce(a.key, ':OTHER_KEYS') as agent, n.type,
                   n.wait_bucket, n.run_bucket, sum(n.events)::integer as events, max(n.wait_ms) as wait_ms, max(n.run_ms) as run_ms,
                   sum(n.tokens) as tokens
              from named n
              full join (select tenant, key from own where kind = 'lane' offset 0) l on l.tenant = n.tenant and l.key = n.lane
              full join (select tenant, key from own where kind = 'agent' offset 0) a on a.tenant = n.tenant and a.key = n.agent
             group by n.tenant, n.minute, 3, 4, n.type, n.wait_bucket, n.run_bucket offset 0) c
     where c.minute is not null
     group by c.tenant, c.minute, c.lane, c.agent),
  slice (:COLUMNS) as materialized (
    select m.tenant, k.kind, s.step, m.minute - m.minute % (s.step * 1000) as at, k.key, :SUMS_OF_SLICE
      from minutes m cross join lateral (values ('lane', m.lane), ('agent', m.agent)) k(kind, key)
      cross join (values :STEPS) s(step, kept_ms)
     where abs(v_now - (m.minute - m.minute % (s.step * 1000))) <= s.kept_ms
     group by m.tenant, k.kind, s.step, 4, k.key),
  placed as materialized (
    select * from (
      select c.*, q.kept
        from slice c
        full join (select tenant, kind, step, at, key, true as kept from ranked where kept and is_new offset 0) q
          using (tenant, kind, step, at, key) offset 0) p)
  insert into rollup as r (:COLUMNS)
  select :COLUMNS from placed where kept
  union all
  select tenant, kind, step, at, ':OTHER_KEYS', :SUMS
    from (select :COLUMNS from placed where kept is null union all select :COLUMNS from gone) o group by tenant, kind, step, at
  on conflict (tenant, kind, step, at, key) do update set :ADD_UP;
  update high_water set value = v_last where name = 'rollup';
  return query select v_events, exists (select 1 from event where last_seq > v_last);
end $$;

-- Whether all events before the cutoff, or after the latest time, are counted. Counts one slice of the rest. Does not wait
-- for another node that counts.
create function count_before_prune(p_now bigint, p_cutoff bigint, p_latest bigint) returns boolean language plpgsql as $$
begin
  if are_counted(p_cutoff, p_latest) then return true; end if;
  perform roll_up(p_now, :ROLLUP_SLICE_OF_PRUNE);
  return are_counted(p_cutoff, p_latest);
end $$;

create function are_counted(p_cutoff bigint, p_latest bigint) returns boolean language sql as $$
  select coalesce((select e.at between p_cutoff and p_latest from event e
                    where e.last_seq > :COUNTED_UP_TO
                    order by e.last_seq limit 1), true);
$$;

create function prune_rollups(p_now bigint, p_limit integer) returns boolean language plpgsql as $$
declare
  v_now bigint := coalesce(p_now, floor(extract(epoch from clock_timestamp()) * 1000)::bigint);
  v_deleted integer;
begin
  set local synchronous_commit = off;
  -- Rows from a distant future were written while the clock was wrong.
  with gone as materialized (
    select r.ctid from (values :STEPS) s(step, kept_ms)
     cross join lateral (
       (select o.ctid from rollup o where o.step = s.step and o.at < v_now - s.kept_ms limit p_limit)
       union all
       (select f.ctid from rollup f where f.step = s.step and f.at > v_now + s.kept_ms limit p_limit)) r
     limit p_limit)
  delete from rollup r where r.ctid = any (array(select ctid from gone));
  get diagnostics v_deleted = row_count;
  return v_deleted = p_limit;
end $$;
