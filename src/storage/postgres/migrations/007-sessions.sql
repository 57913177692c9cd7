-- As in 006: writers that know nothing of this would leave the new counters as they are.
select pg_advisory_xact_lock(7682);
do $$
declare
  v_schema text;
begin
  for v_schema in select nspname from pg_namespace where nspname like 'rota\_fn\_%' loop
    execute format('drop schema %I cascade', v_schema);
  end loop;
end $$;

-- A conversation: its tasks in order, at most so many at once. Settings that are null are the configuration's.
create table session (
  id               bigint generated always as identity primary key,
  tenant           text collate "C" not null,
  key              text collate "C" not null,
  agent            text,                           -- of its last message
  lane             text,
  mode             text check (mode in ('queue', 'followup', 'interrupt')),
  cap              integer check (cap > 0),
  drop_policy      text check (drop_policy in ('old', 'new')),
  debounce_ms      integer check (debounce_ms >= 0),
  max_concurrent   integer check (max_concurrent > 0),
  default_max      integer not null check (default_max > 0),  -- what the configuration said last
  tokens           bigint,
  context_window   bigint,
  generation       integer not null default 0,
  pinned           boolean not null default false,  -- somebody set something that is to be kept
  last_place       bigint not null default 0,
  cutoff           bigint not null default 0,      -- whatever has this place or one before it and turns up is stale
  first_parked     bigint not null default 1,      -- nothing is parked before this place
  debounce_seq     bigint,                         -- the message that others may still be added to, since when, and how
  debounce_since   bigint,
  debounce_mode    text,
  debounce_length  integer,                        -- its characters; null: nothing can be added to it
  active           integer not null default 0 check (active >= 0),   -- let in and not ended
  parked           integer not null default 0 check (parked >= 0),   -- ready but for the session
  open             integer not null default 0 check (open >= active + parked),         -- not ended
  messages         integer not null default 0 check (messages between 0 and open),     -- those of them that cap counts
  unique (tenant, key)
) with (fillfactor = 50);
-- Indexes on expressions serve those who ask for just these: plans are made while tables are small, when any index will do,
-- and must hold when they are large.
create index session_newest on session ((tenant || ''), id);

-- The tasks of sessions that have not ended, and their turns. What changes while they wait stands here, in narrow rows: on
-- the task it would have to be indexed, and every let-in and every end would touch all indexes of a wide row.
create table turn (
  session     bigint not null,
  -- early: waits for its moment or for others; parked: waits for the session; in: let in, and so it stays until it ends.
  stage       text collate "C" not null check (stage in ('early', 'parked', 'in')),
  place       bigint not null,
  task_seq    bigint not null,
  is_message  boolean not null,
  primary key (session, stage, place)
);
create index turn_of_message on turn ((session + 0), task_seq) where is_message;

alter table task
  add column session bigint,
  add column place bigint,                         -- in its session
  add column origin text collate "C" check (origin in ('message', 'run')),  -- null: it came as a task
  add check (num_nulls(session, place) in (0, 2));
create index task_by_session on task ((session + 0), seq) where session + 0 is not null;

alter table lease add column session bigint;
create index lease_by_session on lease (session, token) where session is not null;

alter table line
  add column parked integer not null default 0 check (parked between 0 and waiting),   -- queued, but not ready
  add column exempt integer not null default 0 check (exempt between 0 and waiting);   -- waiting, not counted by admission
alter table lane add column exempt integer not null default 0 check (exempt between 0 and waiting);
update line n set parked = p.tasks
  from (select line, count(*) as tasks from task where parked is not null group by line) p where p.line = n.id;

-- How much of a lane runs at once, where somebody said so while it ran.
create table lane_setting (
  name         text collate "C" primary key,
  concurrency  integer not null check (concurrency >= 0),
  total        integer check (total > 0)
);

alter table turn set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
alter table session set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
