-- What one task changes in its batch.
create type batch_delta as (batch text, active integer, open integer);

-- Creates batches before their tasks; a batch that exists stays as it is.
create function create_batches(p_now bigint, p_batches json) returns void language plpgsql as $$
#variable_conflict use_column
begin
  insert into batch (id, tenant, parallelism, callback_url, created_at)
  select j.id, j.tenant, j.parallelism, j.callback_url, p_now
    from json_to_recordset(p_batches) as j(id text, tenant text, parallelism integer, callback_url text)
  on conflict (id) do nothing;
end $$;

-- Deletes those batches that got no new task. The others may have ended already, because all of their tasks were rejected.
create function settle_new_batches(p_batches json) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_ids text[] := array(select j.id from json_to_recordset(p_batches) as j(id text));
begin
  perform delete_empty_batches(v_ids);
  perform defer_work('batches', v_ids);
end $$;

-- A batch is deleted with the last of its tasks.
create function delete_empty_batches(p_ids text[]) returns void language plpgsql as $$
begin
  delete from batch b where b.id = any (p_ids) and (select t.seq from task t where t.batch = b.id limit 1) is null;
end $$;

-- Applies deltas of batches; tasks may name a batch that has no row.
create function move_batches(p_deltas batch_delta[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_unsettled text[];
begin
  with moved as (
    select batch, sum(active)::integer as active, sum(open)::integer as open from unnest(p_deltas) group by batch),
  counted as (
    update batch b set active = b.active + m.active, open = b.open + m.open
      from moved m
     -- By its address: a plan with a join, made while there are few batches, would read all of them when there are many.
     cross join lateral (select ctid as address from batch where id = m.batch offset 0) a
     where b.ctid = a.address
    returning b.id, b.active < b.parallelism or (b.open = 0 and b.completed_at is null) as unsettled)
  select array_agg(id) filter (where unsettled) into v_unsettled from counted;
  if v_unsettled is not null then perform defer_work('batches', v_unsettled); end if;
end $$;

-- Admits parked tasks of batches that have a free slot.
create function admit_from_batches(p_ids text[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_deltas queue_delta[];
  v_asking text[];
begin
  with first as (
    select t.address
      from (select id, tenant, parallelism - active as room from batch
             where id = any (p_ids) and active < parallelism) b
     cross join lateral (
       select ctid as address from task where tenant = b.tenant and batch = b.id and parked = 'batch'
        order by rank, seq limit b.room) t),
  entered as (
    update task t set parked = case when t.concurrency_key is not null then 'asking' end from first f where t.ctid = f.address
    returning t.seq, t.batch, t.line, t.rank, t.parked),
  readied as (insert into ready (line, rank, task_seq) select line, rank, seq from entered where parked is null),
  counted as (
    update batch b set active = b.active + e.tasks
      from (select batch, count(*)::integer as tasks from entered group by batch) e
     cross join lateral (select ctid as address from batch where id = e.batch offset 0) a
     where b.ctid = a.address)
  select array_agg(row(line, 0, 0, -1, 1, 0, null, rank, seq)::queue_delta) filter (where parked is null),
         array_agg(seq::text) filter (where parked is not null)
    into v_deltas, v_asking from entered;
  if v_deltas is not null then perform apply_deltas(v_deltas); end if;
  if v_asking is not null then perform defer_work('keys', v_asking); end if;
end $$;

-- The event and the webhook delivery of a batch belong to its last accepted task, and are written in the order of those
-- tasks.
create function complete_batches(p_now bigint, p_ids text[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_seqs bigint[];
  v_tenants text[];
  v_data text[];
  v_counts text[];
  v_urls text[];
  v_hosts text[];
  v_first bigint;
begin
  with completed as (
    update batch set completed_at = p_now where id = any (p_ids) and open = 0 and completed_at is null
    returning id, tenant, callback_url),
  counted as (
    select c.tenant, c.callback_url, last.seq, last.resting_state,
           (select json_object_agg(s.resting_state, s.tasks)
              from (select resting_state, count(*) as tasks from task where batch = c.id group by resting_state) s) as counts
      from completed c
     cross join lateral (select seq, resting_state from task where batch = c.id order by seq desc limit 1) last)
  select array_agg(seq order by seq), array_agg(tenant order by seq), array_agg(callback_url order by seq),
         array_agg(counts::text order by seq),
         array_agg(json_build_object('state', resting_state, 'counts', counts)::text order by seq)
    into v_seqs, v_tenants, v_urls, v_counts, v_data from counted;
  if v_seqs is null then return; end if;
  v_first := take_event_numbers(cardinality(v_seqs));
  perform append_events(v_first, p_now, array_fill('batch.completed'::text, array[cardinality(v_seqs)]), v_tenants, v_seqs, v_data);
  with added as (
    insert into delivery (seq, tenant, task_seq, url, batch_counts, created_at, due_at)
    select v_first + u.ordinal - 1, u.tenant, u.seq, u.url, u.counts, p_now, p_now
      from unnest(v_seqs, v_tenants, v_urls, v_counts) with ordinality u(seq, tenant, url, counts, ordinal)
     where u.url is not null
    returning tenant, host)
  select array_agg(tenant), array_agg(host) into v_tenants, v_hosts from added;
  if v_tenants is null then return; end if;
  perform refresh_receivers(p_now, v_tenants, v_hosts);
  -- Once for a whole batch, which is rare enough for a notification inside the transaction. The functions that end its
  -- tasks do not know whether the batch has a callback URL.
  perform pg_notify('rota', '{"from":"","signals":[{"kind":"deliveries"}]}');
end $$;
