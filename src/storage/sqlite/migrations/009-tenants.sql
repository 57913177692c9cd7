-- Whose work it is. One that has work but no row here works like one without bounds.
create table tenant (
  id             text primary key,
  name           text not null unique,
  disabled       integer not null default 0 check (disabled in (0, 1)),
  -- Null: no bound.
  max_queued     integer check (max_queued >= 0),
  max_inflight   integer check (max_inflight >= 0),
  max_schedules  integer check (max_schedules >= 0),
  max_streams    integer check (max_streams >= 0),
  created_at     integer not null,
  updated_at     integer not null
) strict, without rowid;
insert into tenant (id, name, created_at, updated_at)
select 'default', 'default', now, now from (select cast(unixepoch('subsec') * 1000 as integer) as now);

-- How many of its ready tasks a line could start, its tenant and the total of its lane aside.
alter table line add column room integer not null default 0 check (room between 0 and ready);
update line set room = max(0, min(
  ready,
  coalesce((select per_agent from lane where name = line.lane), 9000000000000000) - inflight,
  coalesce(agent_max - (select sum(s.inflight) from line s where s.tenant = line.tenant and s.agent = line.agent),
           9000000000000000)));

-- The tasks of one tenant in one lane, counted: what sharing out a lane's slots looks at, as choosing looks at lines.
create table tenant_line (
  id            integer primary key,
  lane          text not null,
  tenant        text not null,
  max_queued    integer,                           -- these three: as in tenant, copied
  max_inflight  integer,
  disabled      integer not null default 0 check (disabled in (0, 1)),
  waiting       integer not null default 0 check (waiting >= 0),
  exempt        integer not null default 0 check (exempt between 0 and waiting),
  inflight      integer not null default 0 check (inflight >= 0),
  supply        integer not null default 0 check (supply >= 0),  -- the room of its lines
  urgent_lines  integer not null default 0 check (urgent_lines between 0 and supply),  -- those that go ahead of fairness
  last_served   integer not null,                  -- token of its last start; at first, see NEWCOMER_LEAD
  -- Slots that its running tasks gave up for others of it, and that it has not been given back.
  owed          integer not null default 0 check (owed >= 0),
  -- Starts in a row that a critical task of it took ahead of fairness; see AHEAD_STREAK_MAX. A slot that was taken from a
  -- running task is one more that may go ahead: it is counted off beforehand, even below nothing.
  ahead_streak  integer not null default 0 check (ahead_streak <= 7),
  startable     integer not null default 0 check (startable in (0, 1)),
  unique (tenant, lane),
  check (startable = 0 or (supply > 0 and disabled = 0))
) strict;
insert into tenant_line (lane, tenant, waiting, exempt, inflight, supply, urgent_lines, last_served, startable)
select lane, tenant, sum(waiting), sum(exempt), sum(inflight), sum(room), sum(room > 0 and ahead = 1), max(last_served),
       max(room) > 0
  from line group by lane, tenant order by min(id);

create index tenant_line_by_lane on tenant_line (lane);
-- Only tenants that can start something are in this one, so that those at their bounds cost a claim nothing.
create index tenant_line_by_fairness on tenant_line (lane, (owed = 0), inflight, last_served, id) where startable = 1;
drop index line_by_fairness;
drop index line_by_head;
create index line_by_fairness on line (lane, tenant, inflight, last_served, id) where startable = 1;
create index line_by_head on line (lane, tenant, head_rank, head_seq) where startable = 1 and ahead = 1;
alter table lane drop column ahead_streak;

-- Paused until its tenant is enabled, by nobody's wish.
alter table schedule add column held integer not null default 0 check (held = 0 or (held = 1 and status = 'paused'));

-- What is told of the schedules of a tenant goes with it.
create index notification_by_tenant on notification (tenant);

-- What lets requests in. The key itself is nowhere.
create table api_key (
  id            text primary key,
  tenant        text not null references tenant,
  name          text not null,
  role          text not null,
  agent         text,                              -- the only one it is for; null: any
  hash          text not null unique,
  created_at    integer not null,
  expires_at    integer,
  last_used_at  integer
) strict, without rowid;
create index api_key_by_tenant on api_key (tenant, created_at, id);

-- Who did what, and when.
create table audit_entry (
  seq      integer primary key autoincrement,
  at       integer not null,
  tenant   text not null,
  key_id   text,
  route    text not null,
  subject  text
) strict;
create index audit_by_tenant on audit_entry (tenant, at, seq);
create index audit_by_key on audit_entry (tenant, key_id, at, seq) where key_id is not null;
create index audit_by_age on audit_entry (at, seq);
