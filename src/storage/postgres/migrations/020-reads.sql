-- Lists that look at the rows of one tenant only, and at a bounded number of them.

-- An index that an operator has built before the upgrade, without holding up writers, is left as it is.
-- Columns of these indexes never change: an end stays on its page and touches none of them.
create index if not exists task_by_tenant on task (tenant, seq);
-- Most tasks have the default priority: they cost these two nothing, and the walk from the newest finds them.
create index if not exists task_by_priority on task (tenant, priority, seq) where priority <> 2;
create index if not exists task_critical on task (tenant, seq) where priority <= 0;
-- By what a task is called in its batch.
create index if not exists task_by_key on task (tenant, (spec::jsonb ->> 'key'), seq) where batch is not null;

-- When the tasks of each thousand were created, first and last: a list of a span of time begins and ends there.
create table task_span (
  last_seq   bigint primary key,
  first_seq  bigint not null,
  first_at   bigint not null,
  last_at    bigint not null,
  check (first_seq <= last_seq and first_at <= last_at)
);
-- The last thousand may not be complete yet.
insert into task_span (last_seq, first_seq, first_at, last_at)
select (seq / 1000) * 1000 + 999, min(seq), min(created_at), max(created_at) from task
 where seq / 1000 < (select max(seq) / 1000 from task) group by seq / 1000;

create index if not exists event_by_tenant on event (tenant, last_seq);
-- Ended tasks in the order of their ends: an index on the task itself would be written by every end.
create index if not exists event_of_end on event (tenant, type, at, last_seq)
  where type in ('task.completed', 'task.failed', 'task.cancelled', 'task.rejected');

drop index notification_by_tenant;
create index notification_by_tenant on notification (tenant, seq);
create index delivery_by_tenant on delivery (tenant, seq);
