-- What a transaction costs is the pages it writes. What is clustered by agent costs a page for every agent that a handful
-- of tasks belongs to, and there were two such structures.

-- What is ready lies in memory now: see ready-set.ts, which fills it from this index.
drop table ready;
create index task_queued on task (seq) where resting_state = 'queued';

-- The tasks of a line, for lists by agent; filled a thousand tasks at a time: see task-of-line.ts.
drop index task_by_agent;
create table task_of_line (
  line      integer not null,
  task_seq  integer not null,
  primary key (line, task_seq)
) strict, without rowid;
insert into task_of_line (line, task_seq) select line, seq from task order by line, seq;
insert into high_water (name, value) select 'task_of_line', coalesce(max(seq), 0) from task;

alter table line add column tasks integer not null default 0 check (tasks >= 0);  -- ended ones included
update line set tasks = (select count(*) from task_of_line x where x.line = line.id);
