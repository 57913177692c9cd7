-- The task in whose attempt a task was submitted, and the first task of that tree. Null: none.
alter table task add column parent_task text collate "C";
alter table task add column root_task text collate "C";
create index task_by_root on task (root_task, seq) where root_task is not null;

-- Who made a schedule, as JSON; null: an older version of Rota stored it. maker_key, maker_agent: the key and the agent in it.
alter table schedule add column provenance text;
alter table schedule add column maker_key text collate "C";
alter table schedule add column maker_agent text collate "C";
create index schedule_by_maker_key on schedule (tenant, maker_key, status, id) where maker_key is not null;
create index schedule_by_maker_agent on schedule (tenant, maker_agent, status, id) where maker_agent is not null;

-- Who made a change, as JSON; null: an older version of Rota wrote the entry, or nothing but the key is known.
alter table audit_entry add column provenance text;

-- For a key with bounds of its own: these.
alter table api_key add column bounds json;

-- Tasks that were submitted under a bound on open tasks. A row stays until its task is found to have ended.
create table bounded_task (
  tenant    text collate "C" not null,
  owner     text collate "C" not null,             -- the key or the agent that is bounded
  task_seq  bigint not null,
  at        bigint not null,
  primary key (tenant, owner, task_seq)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
create index bounded_task_by_age on bounded_task (at);

-- How many tasks an owner submitted under a bound on submits, by minute.
create table bounded_minute (
  tenant   text collate "C" not null,
  owner    text collate "C" not null,
  minute   bigint not null,
  submits  integer not null,
  primary key (tenant, owner, minute)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
create index bounded_minute_by_age on bounded_minute (minute);

-- Random keys that all nodes share, such as the one that signs task tokens.
create table shared_secret (
  name   text collate "C" primary key,
  value  text not null
);
