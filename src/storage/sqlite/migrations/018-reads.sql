-- Lists that look at the rows of one tenant only, and at a bounded number of them.

-- The tasks of a tenant, as task_of_line has those of an agent queue: filled a thousand at a time, see task-of-line.ts.
create table task_of_tenant (
  tenant    text not null,
  task_seq  integer not null,
  primary key (tenant, task_seq)
) strict, without rowid;
insert into task_of_tenant (tenant, task_seq)
select tenant, seq from task
 where seq <= coalesce((select value from high_water where name = 'task_of_line'), 0) order by tenant, seq;

-- When the tasks of each thousand were created, first and last: a list of a span of time begins and ends there.
create table task_span (
  last_seq   integer primary key,
  first_seq  integer not null,
  first_at   integer not null,
  last_at    integer not null,
  check (first_seq <= last_seq and first_at <= last_at)
) strict;
insert into task_span (last_seq, first_seq, first_at, last_at)
select max(seq), min(seq), min(created_at), max(created_at) from task
 where seq <= coalesce((select value from high_water where name = 'task_of_line'), 0) group by seq / 1000;

drop index task_queued;
create index task_queued on task (tenant, seq) where resting_state = 'queued';
-- Most tasks have the default priority: they cost these two nothing, and the walk from the newest finds them.
create index task_by_priority on task (tenant, priority, seq) where priority <> 2;
create index task_critical on task (tenant, seq) where priority <= 0;
-- By what a task is called in its batch.
create index task_by_key on task (tenant, json_extract(spec, '$.key'), seq) where batch is not null;

create index event_by_tenant on event (tenant, last_seq);
-- Ended tasks in the order of their ends: an index on the task itself would be written by every end.
create index event_of_end on event (tenant, type, at, last_seq, count)
  where type = 'task.completed' or type = 'task.failed' or type = 'task.cancelled' or type = 'task.rejected';

drop index notification_by_tenant;
create index notification_by_tenant on notification (tenant, seq);
create index delivery_by_tenant on delivery (tenant, seq);
create index session_by_tenant on session (tenant, id);
create index schedule_by_tenant on schedule (tenant, id);
create index run_by_schedule_status on run (schedule, status, id);
