-- Updates hosts of which deliveries were added, changed or deleted, and their tenants.
create function refresh_receivers(p_now bigint, p_tenants text[], p_hosts text[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_idle text[];
begin
  insert into receiver (tenant, host)
  select distinct u.tenant, u.host from unnest(p_tenants, p_hosts) u(tenant, host)
   where exists (select 1 from delivery d where d.tenant = u.tenant and d.host = u.host and d.due_at is not null offset 0)
  on conflict do nothing;
  with touched as (select distinct u.tenant, u.host from unnest(p_tenants, p_hosts) u(tenant, host)),
  changed as (
    update receiver r
       set turn = case when d.due_at is not null
                       then :FIRST_TURN end
      from touched u
     cross join lateral (
       select (select due_at from delivery
                where tenant = u.tenant and host = u.host and due_at is not null order by due_at, seq limit 1)) d(due_at)
     cross join lateral (select ctid as address from receiver where tenant = u.tenant and host = u.host offset 0) a
     where r.ctid = a.address
    returning r.tenant, r.turn)
  select array_agg(distinct tenant) filter (where turn is null) into v_idle from changed;
  if v_idle is not null then
    delete from receiver r using unnest(p_tenants, p_hosts) u(tenant, host)
     cross join lateral (select ctid as address from receiver where tenant = u.tenant and host = u.host offset 0) a
     where r.ctid = a.address and r.turn is null and not r.proven;
    -- Idle hosts are remembered, except those that were served longest ago.
    delete from receiver r using (
      select o.address from unnest(v_idle) i(tenant)
       cross join lateral (
         select ctid as address from receiver where tenant = i.tenant and turn is null
          order by served desc, host desc offset :IDLE_HOSTS_MAX) o) beyond
     where r.ctid = beyond.address;
  end if;
  perform refresh_turns(p_now, p_tenants);
end $$;

-- Updates tenants of which hosts were changed, or which were disabled or enabled.
create function refresh_turns(p_now bigint, p_tenants text[]) returns void language plpgsql as $$
#variable_conflict use_column
begin
  insert into delivery_turn as t (tenant, proven, turn)
  select u.tenant, k.proven, f.turn
    from (select distinct tenant from unnest(p_tenants) u(tenant)) u
   cross join (values (true), (false)) k(proven)
   cross join lateral (
     select case when (select disabled from tenant where id = u.tenant) is true then null
                 else (select turn from receiver where tenant = u.tenant and proven = k.proven and turn is not null
                        order by turn limit 1) end) f(turn)
  on conflict (tenant, proven) do update
     set turn = case when excluded.turn is not null then :NEXT_TURN end
   where t.turn is not null or excluded.turn is not null;
end $$;
