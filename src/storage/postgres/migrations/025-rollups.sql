-- What happened per minute, hour and day, counted from the log: see rollup-storage.ts. How far the log is counted is the
-- high_water 'rollup', which the node that counts keeps locked.
create table rollup (
  tenant     text collate "C" not null,
  kind       text collate "C" not null check (kind in ('lane', 'agent')),
  step       integer not null check (step in (60, 3600, 86400)),  -- in seconds
  at         bigint not null,                      -- when it begins
  key        text collate "C" not null,            -- the lane or the agent; empty: all others
  submitted  bigint not null,
  started    bigint not null,
  done       bigint not null,
  failed     bigint not null,
  cancelled  bigint not null,
  tokens     bigint not null,
  wait       bigint[] not null,                    -- these two: how many in each bucket
  wait_max   bigint not null,                      -- in milliseconds
  run        bigint[] not null,
  run_max    bigint not null,
  primary key (tenant, kind, step, at, key)
) with (fillfactor = 50);
create index rollup_by_age on rollup (step, at);
-- The newest rows are written again and again.
alter table rollup set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- The tokens of a task that were counted when it failed or was cancelled: a retry may end it once more.
create table counted_tokens (
  task_seq  bigint primary key,
  tokens    bigint not null check (tokens > 0)
);
