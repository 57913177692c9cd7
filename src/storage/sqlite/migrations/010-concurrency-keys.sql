-- Tasks of a tenant with the same key run one at a time; null: it has none.
alter table task add column concurrency_key text;
-- Copied: an end need not read the task to know.
alter table lease add column concurrency_key text;

-- A column cannot be given another check: a new one takes its place. What holds a queued task back from the ready set.
drop index task_parked;
drop index task_parked_in_batch;
alter table task add column held_back text
  check (held_back is null or ((held_back = 'batch' or held_back = 'session' or held_back = 'key') and
                               resting_state = 'queued'));
update task set held_back = parked where resting_state = 'queued' and parked is not null;
alter table task drop column parked;
alter table task rename column held_back to parked;
create index task_parked_in_batch on task (batch, rank, seq) where parked = 'batch';
create index task_parked on task (line, seq) where parked is not null;
create index task_waiting_for_key on task (tenant, concurrency_key, rank, seq) where parked = 'key';

-- Who has a key: the one task with it that is ready or in flight. A key that nobody wants has no row.
create table key_hold (
  tenant     text not null,
  key        text not null,
  task_seq   integer not null,
  -- Whether a task of another line waits, or has waited, for it: a claim looks whether the holder can start. Those it looked
  -- at last come last.
  contested  integer not null default 0 check (contested in (0, 1)),
  looked_at  integer not null default 0,
  primary key (tenant, key)
) strict, without rowid;
create index key_contested on key_hold (looked_at, tenant, key) where contested = 1;
