-- A node is handed only what it can execute. What that takes is the same for all tasks of a line: an agent that is not
-- served has a line by itself for each kind of task that not every live node can execute.

-- As in 006: writers that know nothing of this would hand out what their node cannot execute.
select pg_advisory_xact_lock(7682);
do $$
declare
  v_schema text;
begin
  for v_schema in select nspname from pg_namespace where nspname like 'rota\_fn\_%' loop
    execute format('drop schema %I cascade', v_schema);
  end loop;
end $$;

alter table line
  add column kind text collate "C" not null default '',   -- the kind of tasks that it holds alone; '': all kinds
  add column served boolean not null default false,       -- its agent has an executor of its own, on a live node or on one that is away
  -- Whether a live node can execute its tasks: 0 yes; 1 no, but its agent is served; 2 no, and it is not.
  add column standing smallint not null default 0,
  -- Which nodes can. 0: all, and it holds all kinds, so that choosing it needs no further look; else a row of pool.
  add column pool integer not null default 0,
  add column shared boolean not null default false;       -- its agent has several lines in this lane
alter table line drop constraint line_tenant_agent_lane_key;
alter table line add unique (tenant, agent, lane, kind);
alter table line drop constraint line_check;
alter table line add constraint line_check check (
  waiting >= 0 and ready between 0 and waiting and inflight >= 0
  and parked between 0 and waiting
  and exempt between 0 and waiting
  and (ready = 0) = (head_seq is null)
  and room between 0 and ready
  and startable = (room > 0)
  and standing between 0 and 2
  and (standing = 0 or room = 0)) not valid;

-- Where every node can execute everything, the second two are empty.
drop index line_by_fairness;
drop index line_by_head;
create index line_by_fairness on line (lane, tenant, inflight, last_served, id) where startable and pool = 0;
create index line_by_head on line (lane, tenant, head_rank, head_seq) where startable and ahead and pool = 0;
create index line_of_pool_by_fairness on line (lane, tenant, pool, inflight, last_served, id) where startable and pool <> 0;
create index line_of_pool_by_head on line (lane, tenant, pool, head_rank, head_seq) where startable and ahead and pool <> 0;
create index line_unserved on line (id) where standing = 2;

-- What nodes can execute. Nodes that can execute the same share a row; its key is a hash of what it says.
create table profile (
  id     text collate "C" primary key,
  kinds  text[] not null                           -- of agents that are not served
);
create table profile_agent (
  agent    text collate "C" not null,
  profile  text collate "C" not null references profile on delete cascade,
  serves   boolean not null,                       -- whether it has an executor for that agent alone
  primary key (agent, profile)
);
create index profile_agent_by_profile on profile_agent (profile);
alter table node add column profile text collate "C" not null default '';  -- '': it can execute everything
-- Agents that nodes named which are gone, and when the last of those was there.
create table agent_seen (
  agent   text collate "C" primary key,
  serves  boolean not null,
  at      bigint not null
);
-- Sets of profiles whose nodes can execute the same lines.
create table pool (
  id        integer generated always as identity primary key,
  profiles  text[] collate "C" not null unique
);
-- One row: the kinds that every live node can execute for agents that are not served, and the profiles of live nodes.
create table ability (
  common_kinds  text[] not null default '{action,instruction,message,custom}',
  live          text[] collate "C" not null default '{}'
);
insert into ability default values;

-- Tasks of agents that are not served and that no live node can execute, and since when that is known.
create table unserved (
  task_seq  bigint primary key,
  at        bigint not null
);
create index unserved_by_age on unserved (at, task_seq);
