-- As in 006: writers that know nothing of this would leave the new counters as they are.
select pg_advisory_xact_lock(7682);
do $$
declare
  v_schema text;
begin
  for v_schema in select nspname from pg_namespace where nspname like 'rota\_fn\_%' loop
    execute format('drop schema %I cascade', v_schema);
  end loop;
end $$;

-- Whose work it is. One that has work but no row here works like one without bounds.
create table tenant (
  id             text collate "C" primary key,
  name           text collate "C" not null unique,
  disabled       boolean not null default false,
  -- Null: no bound.
  max_queued     integer check (max_queued >= 0),
  max_inflight   integer check (max_inflight >= 0),
  max_schedules  integer check (max_schedules >= 0),
  max_streams    integer check (max_streams >= 0),
  created_at     bigint not null,
  updated_at     bigint not null
);
create index tenant_with_queue on tenant (id) where max_queued is not null;
insert into tenant (id, name, created_at, updated_at)
select 'default', 'default', now, now from (select floor(extract(epoch from clock_timestamp()) * 1000)::bigint as now) n;

-- How many of its ready tasks a line could start, its tenant and the total of its lane aside.
alter table line add column room integer not null default 0;
update line n
   set room = greatest(least(n.ready, l.per_agent - n.inflight, case when n.agent_max is not null then
                n.agent_max - (select sum(s.inflight) from line s where s.tenant = n.tenant and s.agent = n.agent) end), 0)
  from lane l where l.name = n.lane;
alter table line add check (room between 0 and ready and startable = (room > 0));

-- The tasks of one tenant in one lane, counted: what sharing out a lane's slots looks at, as choosing looks at lines.
create table tenant_line (
  id            bigint generated always as identity primary key,
  lane          text collate "C" not null references lane,
  tenant        text collate "C" not null,
  max_inflight  integer,                           -- these two: as in tenant, copied
  disabled      boolean not null default false,
  waiting       integer not null default 0,
  exempt        integer not null default 0,
  inflight      integer not null default 0,
  supply        bigint not null default 0,         -- the room of its lines
  urgent_lines  integer not null default 0,        -- those of its lines that can start what goes ahead of fairness
  last_served   bigint not null,                   -- token of its last start; at first, see NEWCOMER_LEAD
  -- Slots that its running tasks gave up for others of it, and that it has not been given back.
  owed          integer not null default 0,
  -- Starts in a row that a critical task of it took ahead of fairness; see AHEAD_STREAK_MAX. A slot that was taken from a
  -- running task is one more that may go ahead: it is counted off beforehand, even below nothing.
  ahead_streak  integer not null default 0,
  startable     boolean not null default false,
  crowded       boolean not null default false,    -- as in lane, copied
  -- What the index below is about: owed = 0, inflight and last_served. Null for tenants that can start nothing, so that
  -- those at their bounds cost a claim nothing; and null where there are few, so that changing their busy rows touches no
  -- index.
  turn_unowed   boolean,
  turn_inflight integer,
  turn_served   bigint,
  unique (lane, tenant),
  -- One for all: the row is busy, and each is made ready anew for every statement that changes it.
  check (exempt between 0 and waiting and inflight >= 0 and urgent_lines between 0 and supply and owed >= 0
         and ahead_streak <= 7 and (not startable or (supply > 0 and not disabled)))
) with (fillfactor = 20);
create index tenant_line_by_tenant on tenant_line (tenant);
create index tenant_line_by_fairness on tenant_line (lane, turn_unowed, turn_inflight, turn_served, id)
  where turn_unowed is not null;
insert into tenant_line (lane, tenant, waiting, exempt, inflight, supply, urgent_lines, last_served, startable)
select lane, tenant, sum(waiting), sum(exempt), sum(inflight), sum(room), count(*) filter (where room > 0 and ahead),
       max(last_served), bool_or(room > 0)
  from line group by lane, tenant order by min(id);

-- How many tenants there are in a lane, and whether there were ever so many that whose turn it is is looked up in an index
-- rather than among all of them.
alter table lane
  add column tenants integer not null default 0 check (tenants >= 0),
  add column crowded boolean not null default false;
update lane l set tenants = (select count(*) from tenant_line t where t.lane = l.name);
update lane set crowded = true where tenants > 32;
update tenant_line t
   set crowded = true, turn_unowed = case when t.startable then t.owed = 0 end,
       turn_inflight = case when t.startable then t.inflight end, turn_served = case when t.startable then t.last_served end
  from lane l where l.name = t.lane and l.crowded;

drop index line_by_fairness;
drop index line_by_head;
create index line_by_fairness on line (lane, tenant, inflight, last_served, id) where startable;
create index line_by_head on line (lane, tenant, head_rank, head_seq) where startable and ahead;
alter table lane drop column ahead_streak;

-- Paused until its tenant is enabled, by nobody's wish.
alter table schedule add column held boolean not null default false check (not held or status = 'paused');

-- What is told of the schedules of a tenant goes with it.
create index notification_by_tenant on notification (tenant);

-- What lets requests in. The key itself is nowhere.
create table api_key (
  id            text collate "C" primary key,
  tenant        text collate "C" not null references tenant,
  name          text not null,
  role          text not null,
  agent         text,                              -- the only one it is for; null: any
  hash          text collate "C" not null unique,
  created_at    bigint not null,
  expires_at    bigint,
  last_used_at  bigint
) with (fillfactor = 50);
create index api_key_by_tenant on api_key (tenant, created_at, id);

-- Who did what, and when.
create table audit_entry (
  seq      bigint generated always as identity primary key,
  at       bigint not null,
  tenant   text collate "C" not null,
  key_id   text collate "C",
  route    text not null,
  subject  text
);
create index audit_by_tenant on audit_entry (tenant, at, seq);
create index audit_by_key on audit_entry (tenant, key_id, at, seq) where key_id is not null;
create index audit_by_age on audit_entry (at, seq);

alter table tenant_line set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
