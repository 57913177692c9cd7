-- What makes tasks at moments in time. When it is due is worked out elsewhere, from the rule: here stands what follows.
create table schedule (
  id               integer primary key autoincrement,
  tenant           text not null,
  name             text,
  agent            text not null,
  message          text not null,
  phrase           text not null,
  rule             text not null,                  -- JSON
  kind             text not null check (kind in ('once', 'recurring')),
  anchor_at        integer not null,
  conversation_id  text,
  session_key      text,
  delete_after_run integer not null check (delete_after_run in (0, 1)),
  retry_policy     text not null,                  -- JSON
  overlap          text not null check (overlap = 'skip' or overlap = 'queue' or overlap = 'replace' or overlap = 'allow'),
  catch_up         text not null check (catch_up = 'one' or catch_up = 'none' or catch_up = 'all'),
  useful_for_ms    integer check (useful_for_ms > 0),
  timeout_ms       integer check (timeout_ms > 0),
  source           text,                           -- what it was made for, once; null: nobody minds
  status           text not null check (status = 'active' or status = 'paused' or status = 'completed' or
                                        status = 'failed'),
  revision         integer not null default 1,     -- raised by all that happens to it
  created_at       integer not null,
  updated_at       integer not null,
  next_fire_at     integer,                        -- null: nothing is due
  last_due_at      integer,
  last_run_at      integer,
  last_run_id      integer,
  run_count        integer not null default 0 check (run_count >= 0),
  last_status      text check (last_status = 'succeeded' or last_status = 'failed' or last_status = 'missed'),
  last_error       text,
  open_runs        integer not null default 0 check (open_runs >= 0),
  check (next_fire_at is null or status = 'active')
) strict;
create index schedule_due on schedule (next_fire_at, id) where next_fire_at is not null;
create index schedule_by_update on schedule (tenant, updated_at, id);
create index schedule_by_status on schedule (tenant, status, updated_at, id);
create index schedule_by_agent on schedule (tenant, agent, updated_at, id);
create index schedule_next on schedule (tenant, next_fire_at) where next_fire_at is not null;
create index schedule_with_runs on schedule (tenant, open_runs) where open_runs > 0;
create unique index schedule_source on schedule (tenant, source) where source is not null;

-- A moment of a schedule and what became of it; several where it stands for them.
create table run (
  id              integer primary key autoincrement,
  tenant          text not null,
  schedule        integer not null,
  agent           text not null,
  task_id         text,                            -- null: it made none
  due_at          integer not null,                -- the last of its moments
  first_due_at    integer not null,
  moments         integer not null check (moments > 0),
  forced          integer not null check (forced in (0, 1)),  -- out of turn: due_at is no moment of the schedule
  status          text not null check (status = 'running' or status = 'succeeded' or status = 'failed' or
                                       status = 'skipped' or status = 'missed'),
  reason          text,
  started_at      integer,
  completed_at    integer,
  request_id      text,
  result_summary  text,
  error           text,
  input_tokens    integer not null default 0,
  output_tokens   integer not null default 0,
  attempt         integer not null default 0,
  check ((status = 'running') = (completed_at is null)),
  check ((status = 'skipped' or status = 'missed') = (started_at is null)),
  check (first_due_at <= due_at)
) strict;
create unique index run_of_moment on run (schedule, due_at) where forced = 0;
create unique index run_of_task on run (task_id) where task_id is not null;
create index run_by_schedule on run (schedule, id);
create index run_by_tenant on run (tenant, id);
create index run_by_status on run (tenant, status, id);
create index run_open on run (schedule, id) where status = 'running';
-- When it was last touched: the end comes after the fire.
create index run_by_time on run (tenant, coalesce(completed_at, started_at));
create index run_over on run (completed_at) where completed_at is not null;

-- What is told of schedules, in order; what it says of a run is as that was then.
create table notification (
  seq       integer primary key autoincrement,
  at        integer not null,
  tenant    text not null,
  kind      text not null,
  schedule  integer not null,
  agent     text not null,
  run       text,                                  -- JSON; null: it is about the schedule
  reason    text
) strict;

alter table task add column schedule integer;
create index task_by_schedule on task (schedule, seq) where schedule is not null;
