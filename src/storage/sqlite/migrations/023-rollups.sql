-- What happened per minute, hour and day, counted from the log: see rollup-storage.ts. How far the log is counted is the
-- high_water 'rollup'.
create table rollup (
  tenant     text not null,
  kind       text not null check (kind = 'lane' or kind = 'agent'),
  step       integer not null check (step = 60 or step = 3600 or step = 86400),  -- in seconds
  at         integer not null,                     -- when it begins
  key        text not null,                        -- the lane or the agent; empty: all others
  submitted  integer not null,
  started    integer not null,
  done       integer not null,
  failed     integer not null,
  cancelled  integer not null,
  tokens     integer not null,
  wait       text not null,                        -- these two: how many in each bucket, a JSON array
  wait_max   integer not null,                     -- in milliseconds
  run        text not null,
  run_max    integer not null,
  primary key (tenant, kind, step, at, key)
) strict, without rowid;
create index rollup_by_age on rollup (step, at);

-- The tokens of a task that were counted when it failed or was cancelled: a retry may end it once more.
create table counted_tokens (
  task_seq  integer primary key,
  tokens    integer not null check (tokens > 0)
) strict;
