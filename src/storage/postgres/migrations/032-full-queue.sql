-- Which queue was full when a task was rejected. Null: it was not rejected, or a node of an older version rejected it.
alter table task add column full_queue text collate "C";
update task set full_queue = substring(error from '^rejected: (agent|global|server) queue full$') where resting_state = 'rejected';
alter table task add constraint task_full_queue
  check (full_queue is null or (resting_state = 'rejected' and full_queue in ('agent', 'global', 'server'))) not valid;
