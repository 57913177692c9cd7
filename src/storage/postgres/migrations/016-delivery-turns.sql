-- As in 006: writers that know nothing of turns would leave deliveries that nobody claims.
select pg_advisory_xact_lock(7682);
do $$
declare
  v_schema text;
begin
  for v_schema in select nspname from pg_namespace where nspname like 'rota\_fn\_%' loop
    execute format('drop schema %I cascade', v_schema);
  end loop;
end $$;

-- Whose turn it is when deliveries are claimed. The host is read off the URL as callbackHost does it.
alter table delivery add column host text collate "C" not null generated always as (
  rtrim(lower(left(coalesce(substring(url from '^[hH][tT][tT][pP][sS]?://(\[[^]/?#\\]*\]|[^/?#\\:]*)'), ''), 255) collate "C"), '.')
) stored;
drop index delivery_due;
create index delivery_due on delivery (tenant, host, due_at, seq) where due_at is not null;

-- A host that a tenant has deliveries for, or that is proven for it.
create table receiver (
  tenant    text collate "C" not null,
  host      text collate "C" not null,
  failures  integer not null default 3 check (failures between 0 and 3),   -- in a row
  proven    boolean not null generated always as (failures < 3) stored,
  -- Microseconds: when it was handed a delivery, and when it may be handed the next, which is when that is due but not
  -- before the others that were due when it was served. Null: nothing is pending.
  served    bigint not null default 0,
  turn      bigint,
  primary key (tenant, host)
);
create index receiver_turn on receiver (tenant, proven, turn, host) where turn is not null;
create index receiver_idle on receiver (tenant, served, host) where turn is null;

-- The same of all hosts of one kind that a tenant has.
create table delivery_turn (
  tenant  text collate "C" not null,
  proven  boolean not null,
  served  bigint not null default 0,
  turn    bigint,                                  -- null: nothing is pending, or the tenant is disabled
  primary key (tenant, proven)
);
create index delivery_turn_next on delivery_turn (proven, turn, tenant) where turn is not null;

insert into receiver (tenant, host, turn)
select tenant, host, min(due_at) * 1000 from delivery where due_at is not null group by tenant, host;
insert into delivery_turn (tenant, proven, turn)
select r.tenant, false, min(r.turn) from receiver r left join tenant t on t.id = r.tenant
 where coalesce(t.disabled, false) = false group by r.tenant;

alter table receiver set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
alter table delivery_turn set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
