-- Whose turn it is when deliveries are claimed.
alter table delivery add column host text not null default '';
update delivery set host = lower(substr(url, instr(url, '://') + 3)) where instr(url, '://') > 0;
update delivery set host = substr(host, 1, instr(host, '/') - 1) where instr(host, '/') > 0;
update delivery set host = substr(host, 1, instr(host, '\') - 1) where instr(host, '\') > 0;
update delivery set host = substr(host, 1, instr(host, '?') - 1) where instr(host, '?') > 0;
update delivery set host = substr(host, 1, instr(host, '#') - 1) where instr(host, '#') > 0;
update delivery set host = substr(host, 1, instr(host, ']')) where instr(host, ']') > 0;
update delivery set host = substr(host, 1, instr(host, ':') - 1) where instr(host, ':') > 0 and substr(host, 1, 1) <> '[';
update delivery set host = rtrim(substr(host, 1, 255), '.') where length(host) > 255 or host like '%.';
drop index delivery_due;
create index delivery_due on delivery (tenant, host, due_at, seq) where due_at is not null;

-- A host that a tenant has deliveries for, or that is proven for it.
create table receiver (
  tenant    text not null,
  host      text not null,
  failures  integer not null default 3 check (failures between 0 and 3),   -- in a row
  proven    integer not null generated always as (failures < 3) virtual,
  -- Microseconds: when it was handed a delivery, and when it may be handed the next, which is when that is due but not
  -- before the others that were due when it was served. Null: nothing is pending.
  served    integer not null default 0,
  turn      integer,
  primary key (tenant, host)
) strict, without rowid;
create index receiver_turn on receiver (tenant, proven, turn, host) where turn is not null;
create index receiver_idle on receiver (tenant, served, host) where turn is null;

-- The same of all hosts of one kind that a tenant has.
create table delivery_turn (
  tenant  text not null,
  proven  integer not null check (proven in (0, 1)),
  served  integer not null default 0,
  turn    integer,                                 -- null: nothing is pending, or the tenant is disabled
  primary key (tenant, proven)
) strict, without rowid;
create index delivery_turn_next on delivery_turn (proven, turn, tenant) where turn is not null;

insert into receiver (tenant, host, turn)
select tenant, host, min(due_at) * 1000 from delivery where due_at is not null group by tenant, host;
insert into delivery_turn (tenant, proven, turn)
select r.tenant, 0, min(r.turn) from receiver r left join tenant t on t.id = r.tenant
 where coalesce(t.disabled, 0) = 0 group by r.tenant;
