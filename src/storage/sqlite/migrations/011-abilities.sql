-- A node is handed only what it can execute. What that takes is the same for all tasks of a line: an agent that is not
-- served has a line by itself for each kind of task that not every live node can execute.

create table new_line (
  id            integer primary key,
  lane          text not null,
  tenant        text not null,
  agent         text not null,
  kind          text not null default '',          -- the kind of tasks that it holds alone; '': all kinds
  agent_max     integer,                           -- agent.max_inflight, copied
  waiting       integer not null default 0 check (waiting >= 0),
  ready         integer not null default 0 check (ready between 0 and waiting),
  inflight      integer not null default 0 check (inflight >= 0),
  head_rank     integer,                           -- the smallest (rank, task_seq) in ready; null: nothing is ready
  head_seq      integer,
  last_served   integer not null,                  -- token of its last start; at first, see NEWCOMER_LEAD
  startable     integer not null default 0 check (startable in (0, 1)),
  ahead         integer not null default 0 check (ahead in (0, 1)),
  tasks         integer not null default 0 check (tasks >= 0),  -- ended ones included
  exempt        integer not null default 0 check (exempt between 0 and waiting),
  room          integer not null default 0 check (room between 0 and ready),
  -- Whether a live node can execute its tasks: 0 yes; 1 no, but its agent is served; 2 no, and it is not.
  standing      integer not null default 0 check (standing between 0 and 2),
  unique (tenant, agent, lane, kind),
  check ((ready = 0) = (head_seq is null)),
  check (startable = 0 or ready > 0)
) strict;
insert into new_line (id, lane, tenant, agent, agent_max, waiting, ready, inflight, head_rank, head_seq, last_served, startable,
                      ahead, tasks, exempt, room)
select id, lane, tenant, agent, agent_max, waiting, ready, inflight, head_rank, head_seq, last_served, startable, ahead, tasks,
       exempt, room from line;
drop view task_state;
drop table line;
alter table new_line rename to line;
create index line_by_fairness on line (lane, tenant, inflight, last_served, id) where startable = 1;
create index line_by_head on line (lane, tenant, head_rank, head_seq) where startable = 1 and ahead = 1;
create index line_by_kind on line (lane) where kind <> '' and standing = 0;
create index line_unserved on line (id) where standing = 2;
create view task_state as
  select t.id, t.tenant, t.agent, n.lane, coalesce(l.state, t.resting_state) as state, t.priority, t.created_at,
         t.run_at, t.deadline, t.retry_count, t.error, l.node, l.token
    from task t join line n on n.id = t.line left join lease l on l.task_seq = t.seq;

-- Tasks of agents that are not served and that no live node can execute, and since when that is known.
create table unserved (
  task_seq  integer primary key,
  at        integer not null
) strict;
create index unserved_by_age on unserved (at, task_seq);

-- The kinds that a node can execute for agents that are not served, as a JSON array; null: it can execute everything.
alter table node add column kinds text;
-- Whether it is of a process before this one: that cannot execute anything any more.
alter table node add column past integer not null default 0 check (past in (0, 1));
-- The agents that a node names. serves: it has an executor for that agent alone.
create table node_agent (
  agent   text not null,
  node    text not null,
  serves  integer not null check (serves in (0, 1)),
  primary key (agent, node)
) strict, without rowid;
create index node_agent_by_node on node_agent (node);
-- Agents that nodes named which are gone, and when the last of those was there.
create table agent_seen (
  agent   text primary key,
  serves  integer not null check (serves in (0, 1)),
  at      integer not null
) strict, without rowid;
-- The kinds that every live node can execute for agents that are not served.
create table common_kind (kind text primary key) strict, without rowid;
insert into common_kind (kind) values ('action'), ('instruction'), ('message'), ('custom');
