create type delivery_shares as (
  slots bigint, "tenantFactor" double precision, "unprovenSlots" bigint, "unprovenFactor" double precision, "perHost" bigint,
  "perUnprovenHost" bigint);
create type held_delivery as (tenant text, host text, proven boolean);

-- Tenants that may not claim another delivery to hosts of this kind; null: no tenant may.
create function full_tenants(p_shares delivery_shares, p_held held_delivery[], p_proven boolean) returns text[]
language plpgsql as $$
declare
  v_free bigint := :FREE;
  v_unproven_free bigint := :UNPROVEN_FREE;
begin
  if v_free <= 0 or (not p_proven and v_unproven_free <= 0) then return null; end if;
  return array(
    select h.tenant from unnest(p_held) h group by h.tenant
    having count(*) >= p_shares."tenantFactor" * v_free
        or (not p_proven and count(*) filter (where not h.proven) >= p_shares."unprovenFactor" * v_unproven_free));
end $$;

-- Hosts of a tenant that may not get another delivery while they are of this kind.
create function full_hosts(p_shares delivery_shares, p_held held_delivery[], p_tenant text, p_proven boolean) returns text[]
language plpgsql as $$
begin
  return array(
    select h.host from unnest(p_held) h where h.tenant = p_tenant group by h.host
    having count(*) >= case when p_proven then p_shares."perHost" else p_shares."perUnprovenHost" end);
end $$;

-- The due tenant whose turn it is; none if "turn" is null.
create function next_turn(p_full text[], p_passed_over text[], p_proven boolean, p_last bigint) returns delivery_turn
language plpgsql as $$
declare
  v_turn delivery_turn;
begin
  select * into v_turn from delivery_turn t
   where t.proven = p_proven and t.turn <= p_last and t.tenant <> all (p_full) and t.tenant <> all (p_passed_over)
   order by t.turn, t.tenant limit 1;
  return v_turn;
end $$;

-- One after the other: the next turn depends on who has just been served.
create function claim_deliveries(p_now bigint, p_shares json, p_held json, p_hold_ms bigint)
returns table (next_at bigint, seq bigint, tenant text, task_seq bigint, task_id text, url text, host text, host_proven boolean,
               task_state text, task_error text, task_retries integer, task_attempts integer, batch text,
               batch_created_at bigint, parallelism integer, batch_counts text, created_at bigint, status text, tries integer,
               due_at bigint, last_try_at bigint, response_status integer, error text)
language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_last bigint := v_now * :TURNS_PER_MS + :LAST_TURN_OF_MS;
  v_shares delivery_shares := json_populate_record(null::delivery_shares, p_shares);
  v_held held_delivery[] := array(select h from json_populate_recordset(null::held_delivery, p_held) h);
  v_seqs bigint[] := '{}';
  v_full text[];
  v_full_unproven text[];
  -- For each kind: tenants with room of which every due host has its share.
  v_passed_over text[] := '{}';
  v_passed_over_unproven text[] := '{}';
  v_turn delivery_turn;
  v_unproven delivery_turn;
  v_full_hosts text[];
  v_host text;
  v_seq bigint;
  v_served bigint;
begin
  loop
    v_full := full_tenants(v_shares, v_held, true);
    v_full_unproven := full_tenants(v_shares, v_held, false);
    v_turn := next_turn(v_full, v_passed_over, true, v_last);
    v_unproven := next_turn(v_full_unproven, v_passed_over_unproven, false, v_last);
    if v_turn.turn is null or v_unproven.turn < v_turn.turn then v_turn := v_unproven; end if;
    exit when v_turn.turn is null;
    v_full_hosts := full_hosts(v_shares, v_held, v_turn.tenant, v_turn.proven);
    v_host := (
      select r.host from receiver r
       where r.tenant = v_turn.tenant and r.proven = v_turn.proven and r.turn <= v_last and r.host <> all (v_full_hosts)
       order by r.turn, r.host limit 1);
    if v_host is null then
      if v_turn.proven then v_passed_over := v_passed_over || v_turn.tenant;
      else v_passed_over_unproven := v_passed_over_unproven || v_turn.tenant; end if;
      continue;
    end if;
    v_seq := (
      select d.seq from delivery d where d.tenant = v_turn.tenant and d.host = v_host and d.due_at <= v_now
       order by d.due_at, d.seq limit 1);
    if v_seq is null then
      -- The delivery was deleted from outside: corrects the turn.
      perform refresh_receivers(v_now, array[v_turn.tenant], array[v_host]);
      continue;
    end if;
    v_served := v_now * :TURNS_PER_MS + least(cardinality(v_seqs) + 1, :LAST_TURN_OF_MS);
    update delivery set tries = tries + 1, due_at = v_now + p_hold_ms, last_try_at = v_now where seq = v_seq;
    -- Like refresh_receivers, without idle hosts: a delivery is pending here, even if it is held.
    update receiver r
       set served = v_served,
           turn = greatest(v_served, :TURNS_PER_MS * (
             select d.due_at from delivery d where d.tenant = v_turn.tenant and d.host = v_host and d.due_at is not null
              order by d.due_at, d.seq limit 1))
     where r.tenant = v_turn.tenant and r.host = v_host;
    update delivery_turn set served = v_served where tenant = v_turn.tenant and proven = v_turn.proven;
    perform refresh_turns(v_now, array[v_turn.tenant]);
    v_seqs := v_seqs || v_seq;
    v_held := v_held || row(v_turn.tenant, v_host, v_turn.proven)::held_delivery;
  end loop;
  next_at := (
    select min(n.turn) / :TURNS_PER_MS from (
      select (select t.turn from delivery_turn t
               where t.proven = k.proven and t.turn > v_last and t.tenant <> all (k."full") order by t.turn limit 1)
        from (values (true, v_full), (false, v_full_unproven)) k(proven, "full")
      union all
      select (select r.turn from receiver r
               where r.tenant = p.tenant and r.proven = k.proven and r.turn > v_last
                 and r.host <> all (full_hosts(v_shares, v_held, p.tenant, k.proven))
               order by r.turn limit 1)
        from (values (true, v_full, v_passed_over), (false, v_full_unproven, v_passed_over_unproven)) k(proven, "full", over)
       cross join lateral unnest(k.over) p(tenant)
       where p.tenant <> all (k."full")) n(turn));
  return query
    select next_at, :DELIVERY_COLUMNS
      from (select 1) one
      left join (unnest(v_seqs) with ordinality u(seq, ordinal)
      join (:DELIVERY_TABLES) on d.seq = u.seq) on true order by u.ordinal;
end $$;
