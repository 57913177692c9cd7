-- Assigns free keys to new tasks, which are about to be stored with numbers from p_first on. Returns how each is parked, by
-- n; 'asking': settle_keys decides. p_alone: no other task of this call can ask first.
create function take_keys(
  p_forms task_form[], p_form_of integer[], p_full_queues text[], p_admitted boolean[], p_first bigint, p_alone boolean)
returns text[] language plpgsql as $$
#variable_conflict use_column
declare
  -- Tasks that the next steps admit may have been accepted earlier.
  v_at_once boolean := p_alone and not (:SESSIONS_DEFERRED) and not (:KEYS_DEFERRED)
                       and not exists (select 1 from release);
  v_parked text[];
begin
  with wanting as materialized (
    select n, (f).tenant, (f).concurrency_key as key, (f).rank, (f).line, p_first + n - 1 as seq
      from (select u.*, p_forms[u.form] as f from unnest(p_form_of) with ordinality u(form, n) offset 0) u
     where p_full_queues[n] is null and ((f).ready or coalesce(p_admitted[n], false)) and (f).concurrency_key is not null),
  first as materialized (
    select distinct on (w.tenant, w.key) w.*, l.low, l.high
      from wanting w
      join (select tenant, key, min(line) as low, max(line) as high from wanting group by tenant, key) l
        on l.tenant = w.tenant and l.key = w.key
     where v_at_once order by w.tenant, w.key, w.rank, w.seq),
  held as materialized (
    select f.tenant, f.key, h.address, l.task_seq is null and f.rank < t.rank as swaps,
           not h.contested and (f.low <> t.line or f.high <> t.line) as contests
      from first f
     cross join lateral (select task_seq, contested, ctid as address from key_hold where tenant = f.tenant and key = f.key offset 0) h
     cross join lateral (select line, rank from task where seq = h.task_seq offset 0) t
      left join lateral (select task_seq from lease where task_seq = h.task_seq offset 0) l on true),
  taken as (
    insert into key_hold (tenant, key, task_seq, contested)
    select f.tenant, f.key, f.seq, f.low <> f.high from first f
     where not exists (select 1 from held h where h.tenant = f.tenant and h.key = f.key)),
  contested as (
    update key_hold set contested = true where ctid = any (array(select address from held where contests and not swaps)))
  select array_agg(case when w.seq is null then null
                        when f.seq is null or h.swaps then 'asking'
                        when h.address is not null or w.seq <> f.seq then 'key' end order by s.n) into v_parked
    from generate_series(1, cardinality(p_form_of)) s(n)
    left join wanting w on w.n = s.n
    left join first f on f.tenant = w.tenant and f.key = w.key
    left join held h on h.tenant = w.tenant and h.key = w.key;
  return v_parked;
end $$;

-- Assigns the keys that tasks ask for or release. Returns whether any task asked or waited.
create function settle_keys() returns boolean language plpgsql as $$
#variable_conflict use_column
declare
  v_seqs bigint[] := take_deferred_work('keys')::bigint[];
  v_settled boolean;
  v_left json;
  v_key json;
begin
  select settled, left_over into v_settled, v_left from assign_keys(v_seqs, false);
  if v_left is null then return v_settled; end if;
  -- The task that gets a key may take or free a batch slot, which decides who gets the next key.
  for v_key in select * from json_array_elements(v_left) loop
    v_seqs := array(select s::bigint from json_array_elements_text(v_key -> 'seqs') s);
    perform park_for_batch(v_key ->> 'tenant', v_key ->> 'key', v_seqs);
    perform assign_keys(v_seqs, true);
  end loop;
  return true;
end $$;

-- Tasks that would be next for a free key, but whose batch is full, wait for their batch instead.
create function park_for_batch(p_tenant text, p_key text, p_asking bigint[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_first record;
  v_next record;
begin
  perform 1 from key_hold h
    cross join lateral (select seq, line, rank from task where seq = h.task_seq offset 0) t
    left join lateral (select task_seq from lease where task_seq = t.seq offset 0) l on true
    left join lateral (select task_seq from ready where line = t.line and rank = t.rank and task_seq = t.seq offset 0) r on true
   where h.tenant = p_tenant and h.key = p_key and (l.task_seq is not null or r.task_seq is not null);
  if found then return; end if;
  select t.rank, t.seq into v_first from task t
   where t.seq = any (p_asking) and t.parked = 'asking' order by t.rank, t.seq limit 1;
  loop
    select t.rank, t.seq, :IS_BATCH_FULL as full into v_next from task t
     where t.tenant = p_tenant and t.concurrency_key = p_key and t.parked = 'key' order by t.rank, t.seq limit 1;
    exit when not found or not v_next.full or (v_first.rank, v_first.seq) < (v_next.rank, v_next.seq);
    update task set parked = 'batch' where seq = v_next.seq;
  end loop;
end $$;

-- Assigns the keys of these tasks, which ask for them or have released them. settled: whether any task asked or waited.
-- left_over: keys for which batch slots matter, in order, each with its tasks; they stay unassigned unless p_anyway.
create function assign_keys(p_seqs bigint[], p_anyway boolean, out settled boolean, out left_over json)
language plpgsql as $$
#variable_conflict use_column
declare
  v_out queue_delta[];
  v_in queue_delta[];
  v_queues bigint[];
  v_ranks bigint[];
  v_seqs bigint[];
  v_batches batch_delta[];
begin
  with named as materialized (
    -- Each task once: it may release its key and ask for it again.
    select t.* from (select distinct seq from unnest(p_seqs) u(seq)) u
     cross join lateral (select seq, tenant, concurrency_key as key, line, rank, batch, parked from task where seq = u.seq offset 0) t),
  -- For each key: its holder, if there still is one, the first task that asks, and, if the key is free, the first that
  -- waits.
  moved as materialized (
    select k.*, h.address, coalesce(h.contested, false) as contested, o.*,
           a.seq as asks, a.line as asks_line, a.rank as asks_rank,
           w.seq as waits, w.line as waits_line, w.rank as waits_rank, w.batch as waits_batch
      from (select tenant, key, array_agg(seq) as seqs,
                   bool_or(parked = 'asking' and batch is not null) is true as asks_in_batch
              from named group by tenant, key) k
      left join lateral (
        select task_seq, contested, ctid as address from key_hold where tenant = k.tenant and key = k.key offset 0) h on true
      left join lateral (
        select t.seq as holder, t.line as holder_line, t.rank as holder_rank, t.batch as holder_batch,
               l.task_seq is not null as claimed
          from lateral (select seq, line, rank, batch from task where seq = h.task_seq offset 0) t
          left join lateral (select task_seq from lease where task_seq = t.seq offset 0) l on true
          left join lateral (select task_seq from ready where line = t.line and rank = t.rank and task_seq = t.seq offset 0) r on true
         where l.task_seq is not null or r.task_seq is not null) o on true
      left join lateral (
        select n.seq, n.line, n.rank from named n
         where n.tenant = k.tenant and n.key = k.key and n.parked = 'asking' order by n.rank, n.seq limit 1) a on true
      left join lateral (
        select t.seq, t.line, t.rank, t.batch from task t
         where o.holder is null and h.task_seq is not null
           and t.tenant = k.tenant and t.concurrency_key = k.key and t.parked = 'key'
         order by t.rank, t.seq limit 1) w on true),
  decided as materialized (
    select *, case when waits is not null and (asks is null or (waits_rank, waits) < (asks_rank, asks)) then waits
                   when holder is null or (not claimed and asks_rank < holder_rank) then asks end as winner
      from moved
     where p_anyway or not (asks_in_batch or waits_batch is not null or (holder_batch is not null and asks is not null))),
  -- The holder from now on; null: none.
  held as materialized (
    select *, case when winner is null then holder when winner = waits then waits else asks end as owner,
           case when winner is null then holder_line when winner = waits then waits_line else asks_line end as owner_line,
           winner is not null and holder is not null as swapped
      from decided),
  -- The tasks that wait from now on.
  waiting as materialized (
    select n.seq, n.line, n.rank, n.batch, d.tenant, d.key, d.owner_line, false as was_ready
      from named n join held d on d.tenant = n.tenant and d.key = n.key
     where n.parked = 'asking' and n.seq is distinct from d.winner
    union all
    select d.holder, d.holder_line, d.holder_rank, d.holder_batch, d.tenant, d.key, d.owner_line, true from held d where d.swapped),
  -- By address: a plan with joins, made while there are few tasks, would read all of them when there are many.
  parked as (
    update task t set parked = 'key'
      from waiting w cross join lateral (select ctid as address from task where seq = w.seq offset 0) a where t.ctid = a.address),
  started as (
    update task t set parked = null
      from held d cross join lateral (select ctid as address from task where seq = d.winner offset 0) a where t.ctid = a.address),
  stepped_aside as (
    delete from ready where ctid = any (array(
      select (select r.ctid from ready r where r.line = w.line and r.rank = w.rank and r.task_seq = w.seq)
        from waiting w where w.was_ready))),
  crowd as (
    select tenant, key, bool_or(line <> owner_line) as other_lines from waiting group by tenant, key),
  freed as (
    delete from key_hold where ctid = any (array(select address from held where owner is null))),
  given as (
    insert into key_hold (tenant, key, task_seq, contested)
    select d.tenant, d.key, d.owner, coalesce(c.other_lines, false)
      from held d left join crowd c on c.tenant = d.tenant and c.key = d.key where d.address is null and d.owner is not null),
  passed as (
    update key_hold h
       set task_seq = d.owner,
           -- All tasks that waited before are in the agent queue of the holder, unless the key was contested
           -- already.
           contested = coalesce(c.other_lines, false) or coalesce(d.winner <> d.waits and d.waits_line <> d.owner_line, false)
             or (d.contested and (
             c.tenant is not null or d.winner is null or exists (
               select 1 from task t where t.tenant = d.tenant and t.concurrency_key = d.key and t.parked = 'key'
                                      and t.seq <> d.winner)))
      from held d left join crowd c on c.tenant = d.tenant and c.key = d.key
     where h.ctid = d.address and d.owner is not null
       and (d.winner is not null or (c.other_lines and not d.contested))),
  winners as (
    select winner as seq, owner_line as line, case when winner = waits then waits_rank else asks_rank end as rank,
           case when winner = waits then waits_batch end as batch
      from held where winner is not null)
  select (select array_agg(row(line, 0, 0, 1, -1, 0, null, null, null)::queue_delta) from waiting where was_ready),
         (select array_agg(row(line, 0, 0, -1, 1, 0, null, rank, seq)::queue_delta) from winners),
         (select array_agg(line order by seq) from winners), (select array_agg(rank order by seq) from winners),
         (select array_agg(seq order by seq) from winners),
         (select array_agg(b) from (
            select row(batch, -1, 0)::batch_delta as b from waiting where batch is not null
            union all select row(batch, 1, 0)::batch_delta from winners where batch is not null) b),
         exists (select 1 from held where asks is not null or waits is not null),
         (select json_agg(json_build_object('tenant', tenant, 'key', key, 'seqs', seqs) order by tenant, key)
            from moved m where not exists (select 1 from decided d where d.tenant = m.tenant and d.key = m.key))
    into v_out, v_in, v_queues, v_ranks, v_seqs, v_batches, settled, left_over;
  -- Tasks that become ready must not be found while the deltas of those that leave are applied.
  if v_out is not null then perform apply_deltas(v_out); end if;
  if v_in is not null then
    insert into ready (line, rank, task_seq) select * from unnest(v_queues, v_ranks, v_seqs);
    perform apply_deltas(v_in);
  end if;
  if v_batches is not null then perform move_batches(v_batches); end if;
end $$;

-- Whether a lane is at a limit for a tenant: its total, the slots of every node that has reported them, or the tenant's
-- share of them.
create function lane_is_full(p_lane text, p_tenant text) returns boolean language plpgsql stable as $$
declare
  v_lane lane;
  v_nodes text[];
  v_slots record;
begin
  select * into v_lane from lane l where l.name = p_lane;
  if v_lane.inflight >= v_lane.total then return true; end if;
  perform 1 from tenant_line t where t.lane = p_lane and t.tenant = p_tenant and t.inflight >= t.lane_max;
  if found then return true; end if;
  select array_agg(s.node) filter (where s.slots > (select count(*) from lease h where h.lane = p_lane and h.node = s.node))
    into v_nodes from node_slot s join node d on d.id = s.node and not d.dead where s.lane = p_lane having count(*) > 0;
  if not found then return false; end if;
  if v_nodes is null then return true; end if;
  select * into v_slots from slots_on_nodes(v_lane, v_nodes);
  return coalesce((v_slots.p_left ->> p_tenant)::integer, v_slots.p_each, 1) = 0;
end $$;

-- Takes keys from ready tasks that cannot start, and passes them to tasks that could start in this lane. Returns whether it
-- passed any. It checks p_max keys that tasks of several agent queues want. p_each, p_left: what tenants may take of the
-- slots there; see tenant-shares.ts.
create function pass_keys_on(p_now bigint, p_lane text, p_max integer, p_each integer, p_left jsonb)
returns boolean language plpgsql as $$
#variable_conflict use_column
declare
  v_tenants text[];
  v_keys text[];
  v_holds bigint[];
  v_addresses tid[];
  v_holder record;
  v_next record;
  v_passed boolean := false;
begin
  perform 1 from lane where name = p_lane and (total is null or inflight < total);
  if not found then return false; end if;
  select array_agg(tenant order by looked_at, tenant, key), array_agg(key order by looked_at, tenant, key),
         array_agg(task_seq order by looked_at, tenant, key), array_agg(address)
    into v_tenants, v_keys, v_holds, v_addresses
    from (select tenant, key, task_seq, looked_at, ctid as address from key_hold where contested order by looked_at, tenant, key limit p_max) k;
  if v_keys is null then return false; end if;
  if cardinality(v_keys) = p_max then
    update key_hold set looked_at = p_now where ctid = any (v_addresses);
  end if;
  for v_holder in
    with holder as materialized (
      select k.n, k.tenant, k.key, t.*, o.lane, o.for_workers,
             case when o.for_workers then coalesce(o.agent_limit, 1) > 0 else o.room > 0 end as has_room
        from unnest(v_tenants, v_keys, v_holds) with ordinality k(tenant, key, holder, n)
       cross join lateral (select seq, line, rank, batch from task where seq = k.holder offset 0) t
       cross join lateral (
         select n.lane, n.room, n.standing <> 0 and not :IS_ALONE and :IS_FOR_WORKERS as for_workers, :AGENT_LIMIT as agent_limit
           from line n join lane l on l.name = n.lane where n.id = t.line offset 0) o
       where not exists (select 1 from lease l where l.task_seq = k.holder)),
    full_lane as (
      select lane, tenant, false as for_workers
        from (select distinct lane, tenant from holder where lane <> p_lane and not for_workers) l where lane_is_full(lane, tenant)
      union all
      -- The slots of nodes do not matter for workers.
      select h.lane, h.tenant, true from (select distinct lane, tenant from holder where lane <> p_lane and for_workers) h
        join lane l on l.name = h.lane join tenant_line t on t.lane = h.lane and t.tenant = h.tenant
       where l.inflight >= l.total or t.inflight >= t.lane_max),
    stopped as (
      select s.tenant from (select distinct tenant from holder) s
       cross join lateral (
         select bool_or(t.disabled) or (sum(t.inflight) >= max(t.max_inflight)) is true
                or bool_or(t.lane = p_lane and (t.inflight >= t.lane_max) is true)
                or (:LEFT_FOR_TENANT <= 0 and (select l.second_tenant from lane l where l.name = p_lane)) is true as stopped
           from tenant_line t where t.tenant = s.tenant) t
       where t.stopped)
    select h.* from holder h
     where (not h.has_room or (h.lane, h.tenant, h.for_workers) in (select lane, tenant, for_workers from full_lane)) and h.tenant not in (select tenant from stopped)
     order by h.n
  loop
    perform 1 from task t
     where t.tenant = v_holder.tenant and t.concurrency_key = v_holder.key and t.parked = 'key' limit 1;
    if not found then
      update key_hold set contested = false where tenant = v_holder.tenant and key = v_holder.key;
      continue;
    end if;
    select t.* into v_next
      from (select t.seq, t.line, t.rank, t.batch from task t
             where t.tenant = v_holder.tenant and t.concurrency_key = v_holder.key and t.parked = 'key'
             order by t.rank, t.seq limit :KEYS_LOOKED_AT_WAITING) t
     cross join lateral (select * from line where id = t.line offset 0) n
      join lane l on l.name = n.lane
     where n.lane = p_lane
       and (coalesce(:AGENT_ROOM, 1) > 0
            or (n.standing <> 0 and not :IS_ALONE and coalesce(:AGENT_LIMIT, 1) > 0 and :IS_FOR_WORKERS))
       and (t.batch is not distinct from v_holder.batch or not :IS_BATCH_FULL)
     order by t.rank, t.seq limit 1;
    continue when not found;
    delete from ready where line = v_holder.line and rank = v_holder.rank and task_seq = v_holder.seq;
    update task set parked = case when seq = v_holder.seq then 'key' end where seq in (v_holder.seq, v_next.seq);
    update key_hold set task_seq = v_next.seq where tenant = v_holder.tenant and key = v_holder.key;
    perform apply_deltas(array[row(v_holder.line, 0, 0, 1, -1, 0, null, null, null)::queue_delta]);
    insert into ready (line, rank, task_seq) values (v_next.line, v_next.rank, v_next.seq);
    perform apply_deltas(array[row(v_next.line, 0, 0, -1, 1, 0, null, v_next.rank, v_next.seq)::queue_delta]);
    if v_holder.batch is not null or v_next.batch is not null then
      perform move_batches(array_remove(array[
        case when v_holder.batch is not null then row(v_holder.batch, -1, 0)::batch_delta end,
        case when v_next.batch is not null then row(v_next.batch, 1, 0)::batch_delta end], null));
    end if;
    v_passed := true;
  end loop;
  if :BATCHES_DEFERRED then perform settle_batches_and_keys(p_now); end if;
  return v_passed;
end $$;
