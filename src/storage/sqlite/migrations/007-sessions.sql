-- A conversation: its tasks in order, at most so many at once. Settings that are null are the configuration's.
create table session (
  id              integer primary key autoincrement,
  tenant          text not null,
  key             text not null,
  agent           text,                            -- of its last message
  lane            text,
  mode            text check (mode = 'queue' or mode = 'followup' or mode = 'interrupt'),
  cap             integer check (cap > 0),
  drop_policy     text check (drop_policy in ('old', 'new')),
  debounce_ms     integer check (debounce_ms >= 0),
  max_concurrent  integer check (max_concurrent > 0),
  default_max     integer not null check (default_max > 0),  -- what the configuration said last
  tokens          integer,
  context_window  integer,
  generation      integer not null default 0,
  pinned          integer not null default 0 check (pinned in (0, 1)),  -- somebody set something that is to be kept
  last_place      integer not null default 0,
  cutoff          integer not null default 0,      -- whatever has this place or one before it and turns up is stale
  debounce_seq    integer,                         -- the message that others may still be added to, since when, and how
  debounce_since  integer,
  debounce_mode   text,
  active          integer not null default 0 check (active >= 0),    -- let in and not ended
  queued          integer not null default 0 check (queued >= 0),    -- waiting for whatever reason
  messages        integer not null default 0 check (messages between 0 and queued),  -- those of them that cap counts
  unique (tenant, key)
) strict;

alter table task add column session integer;
alter table task add column origin text not null default 'task'
  check (origin = 'task' or origin = 'message' or origin = 'run');
alter table task add column place integer;                     -- its turn in its session
alter table task add column in_session integer not null default 0 check (in_session in (0, 1));  -- let in, and not ended
create index task_by_session on task (session, seq) where session is not null;
-- Most tasks are let in as they come, and are only ever in the first two.
create index task_in_session on task (session, place) where in_session = 1;
create index task_outside_session on task (session, place)
  where session is not null and in_session = 0 and completed_at is null;

alter table lease add column session integer;
alter table lease add column origin text not null default 'task';

-- Those of the waiting that admission does not count: messages and runs.
alter table line add column exempt integer not null default 0 check (exempt between 0 and waiting);
alter table lane add column exempt integer not null default 0 check (exempt between 0 and waiting);

-- How much of a lane runs at once, where somebody said so while it ran.
create table lane_setting (
  name         text primary key,
  concurrency  integer not null check (concurrency >= 0),
  total        integer check (total > 0)
) strict, without rowid;
