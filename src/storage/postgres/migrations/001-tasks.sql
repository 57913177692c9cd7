-- Times are milliseconds since 1970. Numbers named seq grow and are never reused; they are taken under the gate, so
-- their order is the order of commit. sqlite/migrations/001-tasks.sql is the same schema for one process.

create table lane (
  name          text collate "C" primary key,
  total         integer check (total > 0),         -- in flight over all nodes; null: no bound
  per_agent     integer check (per_agent > 0),     -- in flight of one agent in this lane; null: no bound
  strategy      text not null check (strategy in ('fair-fifo', 'priority-fifo')),
  waiting       integer not null default 0 check (waiting >= 0),
  inflight      integer not null default 0 check (inflight >= 0),
  -- Starts in a row that a critical task took ahead of fairness; see AHEAD_STREAK_MAX.
  ahead_streak  integer not null default 0 check (ahead_streak between 0 and 7)
) with (fillfactor = 20);

create table agent (
  tenant        text collate "C" not null,
  agent         text collate "C" not null,
  max_inflight  integer check (max_inflight > 0),  -- over all lanes; null: no bound
  primary key (tenant, agent)
);

-- The tasks of one agent in one lane, counted. All that choosing the next task looks at stands here.
create table line (
  id            bigint generated always as identity primary key,
  lane          text collate "C" not null references lane,
  tenant        text collate "C" not null,
  agent         text collate "C" not null,
  agent_max     integer,                           -- agent.max_inflight, copied
  waiting       integer not null default 0 check (waiting >= 0),
  ready         integer not null default 0 check (ready between 0 and waiting),
  inflight      integer not null default 0 check (inflight >= 0),
  head_rank     bigint,                            -- the smallest (rank, task_seq) in ready; null: nothing is ready
  head_seq      bigint,
  last_served   bigint not null,                   -- token of its last start; at first, see NEWCOMER_LEAD
  startable     boolean not null default false,
  ahead         boolean not null default false,
  unique (tenant, agent, lane),
  check ((ready = 0) = (head_seq is null)),
  check (not startable or ready > 0)
) with (fillfactor = 50);

-- Only lines that can start something are in these two, so that full agents cost a claim nothing.
create index line_by_fairness on line (lane, inflight, last_served, id) where startable;
create index line_by_head on line (lane, head_rank, head_seq) where startable and ahead;

create sequence task_seq;
create table task (
  seq               bigint primary key,
  id                text collate "C" not null unique,
  tenant            text collate "C" not null,
  agent             text collate "C" not null,
  line              bigint not null,
  priority          integer not null,
  rank              bigint not null,               -- its order in ready; 0 and below is critical
  -- The state it rests in while no attempt holds it. A held task has a lease and still reads 'queued' here: a claim
  -- writes no task row. The view task_state says what users see.
  resting_state     text collate "C" not null check (resting_state in
                      ('waiting_dependency', 'delayed', 'queued', 'done', 'failed', 'cancelled', 'rejected')),
  position          integer not null,
  created_at        bigint not null,
  run_at            bigint,
  deadline          bigint,
  deadline_after_ms bigint,                        -- set when the deadline is the default one, counted from here
  max_retries_if_lost integer not null,
  retry_count       integer not null default 0 check (retry_count >= 0),
  executions        integer not null default 0,    -- attempts that have ended
  started_at        bigint,
  last_started_at   bigint,                        -- these three: the attempt that ended the task; null: none did
  last_outcome      text check (last_outcome in ('done', 'failed', 'cancelled', 'lost')),
  last_node         text,
  completed_at      bigint,
  spec              text not null,
  result            text,
  error             text,
  -- What the indexes below are about, and null for a task that is merely queued or done. An end that changes no indexed
  -- value stays on its page and touches no index: a state in an index, or in its predicate, would forbid that.
  due_at            bigint generated always as (case when resting_state = 'delayed' then run_at end) stored,
  expires_at        bigint generated always as (case when completed_at is null then deadline end) stored,
  listed_state      text collate "C" generated always as
                      (case when resting_state not in ('queued', 'done') then resting_state end) stored,
  check ((resting_state in ('done', 'failed', 'cancelled', 'rejected')) = (completed_at is not null)),
  check (resting_state <> 'delayed' or run_at is not null),
  check (result is null or resting_state = 'done'),
  check ((last_started_at is null) = (last_outcome is null))
) with (fillfactor = 55);

-- Where queued or done tasks are listed, the walk from the newest finds them.
create index task_by_state on task (tenant, listed_state, seq) where listed_state is not null;
create index task_by_agent on task (tenant, agent, seq);
create index task_due on task (due_at, seq) where due_at is not null;
create index task_by_deadline on task (expires_at, seq) where expires_at is not null;

-- What could start right now, in order. Rows come and go and are never changed.
create table ready (
  line      bigint not null,
  rank      bigint not null,
  task_seq  bigint not null,
  primary key (line, rank, task_seq)
);

-- What is in flight. Ending an attempt means deleting its row by token: who finds none has lost it.
create table lease (
  task_seq    bigint primary key,
  token       bigint not null,                     -- number of its task.started event
  node        text collate "C" not null,
  line        bigint not null,
  state       text not null check (state in ('assigned', 'running')),
  attempt     integer not null check (attempt > 0),
  started_at  bigint not null
);

-- Attempts that ended without ending their task; the one that did is on the task.
create table attempt (
  task_seq    bigint not null,
  number      integer not null check (number > 0),
  started_at  bigint not null,
  ended_at    bigint not null,
  outcome     text not null check (outcome in ('done', 'failed', 'cancelled', 'interrupted', 'lost')),
  error       text,
  node        text not null,
  primary key (task_seq, number)
);

-- The log. Neighbouring events that say the same of different tasks share a row: a transaction that starts fifty tasks
-- writes one. The nth event of a row has the number last_seq - count + n.
create sequence event_seq;
create table event (
  last_seq   bigint primary key,
  count      integer not null check (count > 0),
  type       text collate "C" not null,
  at         bigint not null,
  tenant     text collate "C" not null,
  task_seqs  bigint[] not null,
  data       text
);

create table node (
  id          text collate "C" primary key,
  beat        bigint not null default 0,
  beat_at     bigint not null,
  dead        boolean not null default false
) with (fillfactor = 50);

-- How many tasks of a tenant rest in each state. What is in flight counts as 'queued' here.
create table tally (
  tenant  text collate "C" not null,
  state   text collate "C" not null,
  tasks   bigint not null check (tasks >= 0),
  primary key (tenant, state)
) with (fillfactor = 20);

create view task_state as
  select t.id, t.tenant, t.agent, n.lane, coalesce(l.state, t.resting_state) as state, t.priority, t.created_at,
         t.run_at, t.deadline, t.retry_count, t.error, l.node, l.token
    from task t join line n on n.id = t.line left join lease l on l.task_seq = t.seq;

-- Rows of these tables live for milliseconds: vacuum by count rather than by share, and without pausing.
alter table ready set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
alter table lease set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
alter table line set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
alter table lane set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
alter table tally set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);
