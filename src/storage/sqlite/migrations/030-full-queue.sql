-- Which queue was full when a task was rejected. Null: it was not rejected. No list: an update of the state would build a table of it.
alter table task add column full_queue text
  check (full_queue is null
         or (resting_state = 'rejected' and (full_queue = 'agent' or full_queue = 'global' or full_queue = 'server')));
update task
   set full_queue = case error when 'rejected: agent queue full' then 'agent' when 'rejected: global queue full' then 'global'
                               when 'rejected: server queue full' then 'server' end
 where resting_state = 'rejected';
