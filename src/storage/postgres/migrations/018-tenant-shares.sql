-- While a second enabled tenant exists, each holds only its share of a lane's slots.

-- As in 006: writers that know nothing of this would hand out more than that, and count what waits of disabled tenants.
select pg_advisory_xact_lock(7682);
do $$
declare
  v_schema text;
begin
  for v_schema in select nspname from pg_namespace where nspname like 'rota\_fn\_%' loop
    execute format('drop schema %I cascade', v_schema);
  end loop;
end $$;

alter table lane
  add column per_tenant integer,                            -- of total; null: no bound
  add column second_tenant boolean not null default false;  -- a second enabled tenant exists
alter table lane drop constraint lane_check;
alter table lane add constraint lane_check check (
  (total is null or total > 0) and (per_agent is null or per_agent > 0) and (per_tenant is null or per_tenant > 0)
  and strategy in ('fair-fifo', 'priority-fifo')
  and waiting >= 0 and inflight >= 0
  and exempt between 0 and waiting
  and aging_ms >= 0 and tenants >= 0) not valid;
update lane set second_tenant = true where (select count(*) from tenant where not disabled) > 1;
-- lane.per_tenant while lane.second_tenant is set, else null; copied.
alter table tenant_line add column lane_max integer;
-- How many slots of a lane one tenant may hold on this node; null: no bound.
alter table node_slot add column per_tenant integer check (per_tenant > 0);

-- What waits of disabled tenants is not counted by admission either: lane.exempt has all of it.
update lane l set exempt = l.exempt + t.counted
  from (select lane, sum(waiting - exempt) as counted from tenant_line where disabled group by lane) t where t.lane = l.name;
