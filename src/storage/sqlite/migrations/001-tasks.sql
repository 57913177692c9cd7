-- Times are milliseconds since 1970. Numbers named seq grow and are never reused. Constraints and predicates spell lists
-- out with `or`: for every `in` of more than two values SQLite would build a table in memory at every write.

create table lane (
  name          text primary key,
  total         integer check (total > 0),         -- in flight over all nodes; null: no bound
  per_agent     integer check (per_agent > 0),     -- in flight of one agent in this lane; null: no bound
  strategy      text not null check (strategy in ('fair-fifo', 'priority-fifo')),
  waiting       integer not null default 0 check (waiting >= 0),
  inflight      integer not null default 0 check (inflight >= 0),
  -- Starts in a row that a critical task took ahead of fairness; see AHEAD_STREAK_MAX.
  ahead_streak  integer not null default 0 check (ahead_streak between 0 and 7)
) strict, without rowid;

create table agent (
  tenant        text not null,
  agent         text not null,
  max_inflight  integer check (max_inflight > 0),  -- over all lanes; null: no bound
  primary key (tenant, agent)
) strict, without rowid;

-- The tasks of one agent in one lane, counted. All that choosing the next task looks at stands here.
create table line (
  id            integer primary key,
  lane          text not null,
  tenant        text not null,
  agent         text not null,
  agent_max     integer,                           -- agent.max_inflight, copied
  waiting       integer not null default 0 check (waiting >= 0),
  ready         integer not null default 0 check (ready between 0 and waiting),
  inflight      integer not null default 0 check (inflight >= 0),
  head_rank     integer,                           -- the smallest (rank, task_seq) in ready; null: nothing is ready
  head_seq      integer,
  last_served   integer not null,                  -- token of its last start; at first, see NEWCOMER_LEAD
  startable     integer not null default 0 check (startable in (0, 1)),
  ahead         integer not null default 0 check (ahead in (0, 1)),
  unique (tenant, agent, lane),
  check ((ready = 0) = (head_seq is null)),
  check (startable = 0 or ready > 0)
) strict;

-- Only lines that can start something are in these two, so that full agents cost a claim nothing.
create index line_by_fairness on line (lane, inflight, last_served, id) where startable = 1;
create index line_by_head on line (lane, head_rank, head_seq) where startable = 1 and ahead = 1;

create table task (
  seq               integer primary key,
  id                text not null unique,
  tenant            text not null,
  agent             text not null,
  line              integer not null,
  priority          integer not null,
  rank              integer not null,              -- its order in ready; 0 and below is critical
  -- The state it rests in while no attempt holds it. A held task has a lease and still reads 'queued' here: a claim
  -- writes no task row. The view task_state says what users see.
  resting_state     text not null check (
                      resting_state = 'queued' or resting_state = 'done' or resting_state = 'failed' or
                      resting_state = 'cancelled' or resting_state = 'rejected' or resting_state = 'delayed' or
                      resting_state = 'waiting_dependency'),
  position          integer not null,
  created_at        integer not null,
  run_at            integer,
  deadline          integer,
  deadline_after_ms integer,                       -- set when the deadline is the default one, counted from here
  max_retries_if_lost integer not null,
  retry_count       integer not null default 0 check (retry_count >= 0),
  executions        integer not null default 0,    -- attempts that have ended
  started_at        integer,
  last_started_at   integer,                       -- these three: the attempt that ended the task; null: none did
  last_outcome      text check (last_outcome = 'done' or last_outcome = 'failed' or last_outcome = 'cancelled' or
                                last_outcome = 'lost'),
  last_node         text,
  completed_at      integer,
  spec              text not null,
  result            text,
  error             text,
  check ((resting_state = 'done' or resting_state = 'failed' or resting_state = 'cancelled' or
          resting_state = 'rejected') = (completed_at is not null)),
  check (resting_state <> 'delayed' or run_at is not null),
  check (result is null or resting_state = 'done'),
  check ((last_started_at is null) = (last_outcome is null))
) strict;

-- Queued and done are left out, so that the way most tasks go costs this index nothing; where they are listed, the walk
-- from the newest finds them.
create index task_by_state on task (tenant, resting_state, seq)
  where resting_state = 'waiting_dependency' or resting_state = 'delayed' or resting_state = 'failed' or
        resting_state = 'cancelled' or resting_state = 'rejected';
create index task_by_agent on task (tenant, agent, seq);
create index task_due on task (run_at, seq) where resting_state = 'delayed';
create index task_by_deadline on task (deadline, seq) where deadline is not null and completed_at is null;

-- What could start right now, in order. Rows come and go and are never changed.
create table ready (
  line      integer not null,
  rank      integer not null,
  task_seq  integer not null,
  primary key (line, rank, task_seq)
) strict, without rowid;

-- What is in flight. Ending an attempt means deleting its row by token: who finds none has lost it.
create table lease (
  task_seq    integer primary key,
  token       integer not null,                    -- number of its task.started event
  node        text not null,
  line        integer not null,
  state       text not null check (state in ('assigned', 'running')),
  attempt     integer not null check (attempt > 0),
  started_at  integer not null
) strict;

-- Attempts that ended without ending their task; the one that did is on the task.
create table attempt (
  task_seq    integer not null,
  number      integer not null check (number > 0),
  started_at  integer not null,
  ended_at    integer not null,
  outcome     text not null check (outcome = 'done' or outcome = 'failed' or outcome = 'cancelled' or
                                   outcome = 'interrupted' or outcome = 'lost'),
  error       text,
  node        text not null,
  primary key (task_seq, number)
) strict, without rowid;

-- The log. Neighbouring events that say the same of different tasks share a row: a transaction that starts fifty tasks
-- writes one. The nth event of a row has the number last_seq - count + n.
create table event (
  last_seq   integer primary key,
  count      integer not null check (count > 0),
  type       text not null,
  at         integer not null,
  tenant     text not null,
  task_seqs  text not null,                        -- a JSON array
  data       text
) strict;

create table node (
  id          text primary key,
  beat        integer not null default 0,
  beat_at     integer not null,
  dead        integer not null default 0 check (dead in (0, 1))
) strict, without rowid;

-- How many tasks of a tenant rest in each state. What is in flight counts as 'queued' here.
create table tally (
  tenant  text not null,
  state   text not null,
  tasks   integer not null check (tasks >= 0),
  primary key (tenant, state)
) strict, without rowid;

-- The highest numbers that pruning has deleted, so that they are not given out again.
create table high_water (
  name   text primary key,
  value  integer not null
) strict, without rowid;

create view task_state as
  select t.id, t.tenant, t.agent, n.lane, coalesce(l.state, t.resting_state) as state, t.priority, t.created_at,
         t.run_at, t.deadline, t.retry_count, t.error, l.node, l.token
    from task t join line n on n.id = t.line left join lease l on l.task_seq = t.seq;
