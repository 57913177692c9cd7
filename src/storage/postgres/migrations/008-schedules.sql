-- As in 006: writers that know nothing of this would end tasks without ending the runs that they were made for.
select pg_advisory_xact_lock(7682);
do $$
declare
  v_schema text;
begin
  for v_schema in select nspname from pg_namespace where nspname like 'rota\_fn\_%' loop
    execute format('drop schema %I cascade', v_schema);
  end loop;
end $$;

-- What makes tasks at moments in time. When it is due is worked out elsewhere, from the rule: here stands what follows.
create table schedule (
  id                bigint generated always as identity primary key,
  tenant            text collate "C" not null,
  name              text,
  agent             text collate "C" not null,
  message           text not null,                 -- JSON: what an agent is told may hold what text here cannot
  phrase            text not null,
  rule              text not null,                 -- JSON
  kind              text not null check (kind in ('once', 'recurring')),
  anchor_at         bigint not null,
  conversation_id   text,
  session_key       text,
  delete_after_run  boolean not null,
  retry_policy      text not null,                 -- JSON
  overlap           text not null check (overlap in ('skip', 'queue', 'replace', 'allow')),
  catch_up          text not null check (catch_up in ('one', 'none', 'all')),
  useful_for_ms     bigint check (useful_for_ms > 0),
  timeout_ms        bigint check (timeout_ms > 0),
  source            text collate "C",              -- what it was made for, once; null: nobody minds
  status            text collate "C" not null check (status in ('active', 'paused', 'completed', 'failed')),
  revision          bigint not null default 1,     -- raised by all that happens to it
  created_at        bigint not null,
  updated_at        bigint not null,
  next_fire_at      bigint,                        -- null: nothing is due
  last_due_at       bigint,
  last_run_at       bigint,
  last_run_id       bigint,
  run_count         bigint not null default 0 check (run_count >= 0),
  last_status       text check (last_status in ('succeeded', 'failed', 'missed')),
  last_error        text,
  open_runs         integer not null default 0 check (open_runs >= 0),
  check (next_fire_at is null or status = 'active')
) with (fillfactor = 70);
create index schedule_due on schedule (next_fire_at, id) where next_fire_at is not null;
-- As with session_newest in 007: an expression serves those who ask for just this index, and no other index does. Where it
-- is what rows are ordered by, nobody walks past the rows of others in the order of their ids.
create index schedule_next on schedule (tenant, (next_fire_at + 0)) where next_fire_at is not null;
create index schedule_by_update on schedule ((tenant || ''), updated_at, id);
create index schedule_by_id on schedule (('' || tenant), (id + 0));
create index schedule_by_status on schedule (tenant, status, updated_at, id);
create index schedule_by_agent on schedule (tenant, agent, updated_at, id);
create unique index schedule_source on schedule (tenant, source) where source is not null;

-- A moment of a schedule and what became of it; several where it stands for them.
create sequence run_id;
create table run (
  id              bigint primary key,
  tenant          text collate "C" not null,
  schedule        bigint not null,
  agent           text not null,
  task_id         text collate "C",                -- null: it made none
  due_at          bigint not null,                 -- the last of its moments
  first_due_at    bigint not null,
  moments         integer not null check (moments > 0),
  forced          boolean not null,                -- out of turn: due_at is no moment of the schedule
  status          text collate "C" not null check (status in ('running', 'succeeded', 'failed', 'skipped', 'missed')),
  reason          text,
  started_at      bigint,
  completed_at    bigint,
  request_id      text,
  result_summary  text,
  error           text,
  input_tokens    bigint not null default 0,
  output_tokens   bigint not null default 0,
  attempt         integer not null default 0,
  -- When it was last heard of; usually that is its end, but clocks are set back.
  told_at         bigint not null generated always as (greatest(started_at, completed_at)) stored,
  check ((status = 'running') = (completed_at is null)),
  check ((status in ('skipped', 'missed')) = (started_at is null)),
  check (status <> 'running' or task_id is not null)
) with (fillfactor = 90);
create unique index run_of_moment on run (schedule, due_at) where not forced;
create unique index run_of_task on run (task_id) where task_id is not null;
create index run_by_schedule on run (schedule, (id + 0));
create index run_by_schedule_status on run ((schedule + 0), status, (id + 0));
create index run_by_tenant on run ((tenant || ''), (id + 0));
create index run_by_status on run (tenant, status, (id + 0));
create index run_by_time on run (('' || tenant), told_at);
create index run_over on run (completed_at, id) where completed_at is not null;

-- What is told of schedules, in order; what it says of a run is as that was then.
create table notification (
  seq       bigint generated always as identity primary key,
  at        bigint not null,
  tenant    text collate "C" not null,
  kind      text collate "C" not null,
  schedule  bigint not null,
  agent     text not null,
  run       text,                                  -- JSON; null: it is about the schedule
  reason    text
);

alter table task add column schedule bigint;       -- that it is a run of; null: of none
create index task_by_schedule on task ((schedule + 0), seq) where schedule + 0 is not null;

-- What was due stands at the head of an index until it is vacuumed.
alter table schedule set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
