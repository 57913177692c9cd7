-- While a second enabled tenant exists, each holds only its share of a lane's slots.

alter table lane add column per_tenant integer check (per_tenant > 0);   -- of total; null: no bound
alter table lane add column second_tenant integer not null default 0 check (second_tenant in (0, 1));
update lane set second_tenant = 1 where (select count(*) from tenant where disabled = 0) > 1;
-- lane.per_tenant while lane.second_tenant is set, else null; copied.
alter table tenant_line add column lane_max integer;
-- How many slots of a lane one tenant may hold on this node; null: no bound.
alter table node_slot add column per_tenant integer check (per_tenant > 0);

-- What waits of disabled tenants is not counted by admission either: lane.exempt has all of it.
update lane set exempt = exempt + coalesce(
  (select sum(t.waiting - t.exempt) from tenant_line t where t.lane = lane.name and t.disabled = 1), 0);
