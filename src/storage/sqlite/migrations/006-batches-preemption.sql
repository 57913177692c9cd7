-- Ranks leave room in front of what is not critical: a task that had to give way goes there. See rankOf.
update task set rank = priority + 1 where priority > 0 and completed_at is null;
update line set head_rank = head_rank + 1 where head_rank > 0;

-- What holds a queued task back from the ready set.
alter table task add column parked text
  check (parked is null or ((parked = 'batch' or parked = 'session') and resting_state = 'queued'));
alter table task add column preemptions_left integer not null default 0 check (preemptions_left >= 0);
-- What its attempts told of their cost; null: none did.
alter table task add column input_tokens integer;
alter table task add column output_tokens integer;
alter table task add column context_window integer;

-- Copied, so that neither an end nor the choice of who gives way reads the task. preemptible: it may, and has not too often.
alter table lease add column batch text;
alter table lease add column priority integer not null default 0;
alter table lease add column preemptible integer not null default 0 check (preemptible in (0, 1));
create index lease_preemptible on lease (priority desc, token desc) where preemptible = 1;

-- Tasks handed in together. A row goes with the last of them.
create table batch (
  id            text primary key,
  tenant        text not null,
  parallelism   integer check (parallelism > 0),   -- how many may be active; null: no bound
  callback_url  text,
  created_at    integer not null,
  completed_at  integer,                           -- when all had ended for the first time
  active        integer not null default 0 check (active >= 0),  -- ready or held; counted where there is a bound
  open          integer not null default 0 check (open >= 0)     -- not ended
) strict, without rowid;
insert into batch (id, tenant, created_at, completed_at, open)
select batch, min(tenant), min(created_at), case when count(completed_at) = count(*) then max(completed_at) end,
       count(*) - count(completed_at)
  from task where batch is not null group by batch;
create index task_parked_in_batch on task (batch, rank, seq) where parked = 'batch';
create index task_parked on task (line, seq) where parked is not null;

-- How many tasks of each lane a node runs at once.
create table node_slot (
  node   text not null,
  lane   text not null,
  slots  integer not null check (slots >= 0),
  primary key (node, lane)
) strict, without rowid;

-- A delivery tells of the end of a task, or of a batch.
create table delivery_of_any_end (
  seq              integer primary key,            -- number of the event that tells of the end
  tenant           text not null,
  task_seq         integer not null,               -- of a batch: the last that was accepted
  url              text not null,
  batch            text,                           -- the end of the batch, as JSON; null: it tells of the task
  -- The end of the task: it may be retried before it is told.
  task_state       text check (task_state = 'done' or task_state = 'failed' or task_state = 'cancelled'),
  task_error       text,
  task_retries     integer,
  task_attempts    integer,
  created_at       integer not null,
  status           text not null default 'pending'
                     check (status = 'pending' or status = 'delivered' or status = 'failed'),
  tries            integer not null default 0 check (tries >= 0),
  due_at           integer,
  last_try_at      integer,
  response_status  integer,
  error            text,
  check ((status = 'pending') = (due_at is not null)),
  check ((batch is null) = (task_state is not null))
) strict;
insert into delivery_of_any_end (seq, tenant, task_seq, url, task_state, task_error, task_retries, task_attempts,
                                 created_at, status, tries, due_at, last_try_at, response_status, error)
select seq, tenant, task_seq, url, task_state, task_error, task_retries, task_attempts,
       created_at, status, tries, due_at, last_try_at, response_status, error from delivery;
drop table delivery;
alter table delivery_of_any_end rename to delivery;
create index delivery_due on delivery (due_at, seq) where due_at is not null;
create index delivery_by_task on delivery (task_seq, seq);
create index delivery_by_status on delivery (tenant, status, seq);

create table attempt_of_any_outcome (
  task_seq    integer not null,
  number      integer not null check (number > 0),
  started_at  integer not null,
  ended_at    integer not null,
  outcome     text not null check (outcome = 'done' or outcome = 'failed' or outcome = 'cancelled' or
                                   outcome = 'interrupted' or outcome = 'preempted' or outcome = 'lost'),
  error       text,
  node        text not null,
  primary key (task_seq, number)
) strict, without rowid;
insert into attempt_of_any_outcome select * from attempt;
drop table attempt;
alter table attempt_of_any_outcome rename to attempt;

create table aging_lane (
  name          text primary key,
  total         integer check (total > 0),         -- in flight over all nodes; null: no bound
  per_agent     integer check (per_agent > 0),     -- in flight of one agent in this lane; null: no bound
  strategy      text not null check (strategy in ('fair-fifo', 'priority-fifo')),
  aging_ms      integer not null default 0 check (aging_ms >= 0),
  waiting       integer not null default 0 check (waiting >= 0),
  inflight      integer not null default 0 check (inflight >= 0),
  -- Starts in a row that a critical task took ahead of fairness; see AHEAD_STREAK_MAX. A slot that was taken from a
  -- running task is one more that may go ahead: it is counted off beforehand, even below nothing.
  ahead_streak  integer not null default 0 check (ahead_streak <= 7)
) strict, without rowid;
insert into aging_lane (name, total, per_agent, strategy, waiting, inflight, ahead_streak)
select name, total, per_agent, strategy, waiting, inflight, ahead_streak from lane;
drop table lane;
alter table aging_lane rename to lane;
