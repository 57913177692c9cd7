-- What a step that ends and starts tasks pays for besides its rows.

-- What is under way ends first, and nobody who writes comes in between: they would take the tables in another order.
select pg_advisory_xact_lock(7682);
lock table task, line, lane, lease in access exclusive mode;

-- With the columns that came after 001, the end of a task no longer fitted beside it on every page: a fifth went elsewhere
-- and changed all indexes. Pages that are full already stay as they are.
alter table task set (fillfactor = 45);

-- Whatever is critical is ahead: line_by_head finds it, and first.
drop index line_with_criticals;
-- Bounds are looked up by their tenant.
drop index tenant_with_queue;

-- One check for each of these, as for tenant_line: every check is made ready anew for every statement that writes, which
-- took longer than checking.
do $$
declare
  v_check record;
begin
  for v_check in
    select conname, conrelid::regclass as of from pg_constraint
     where contype = 'c' and conrelid in ('task'::regclass, 'line'::regclass, 'lane'::regclass, 'lease'::regclass)
  loop
    execute format('alter table %s drop constraint %I', v_check.of, v_check.conname);
  end loop;
end $$;

-- Not validated: every row has passed the checks that these are made of, and there may be millions.
alter table task add constraint task_check check (
  resting_state in ('waiting_dependency', 'delayed', 'queued', 'done', 'failed', 'cancelled', 'rejected')
  and (resting_state in ('done', 'failed', 'cancelled', 'rejected')) = (completed_at is not null)
  and (resting_state <> 'delayed' or run_at is not null)
  and (result is null or resting_state = 'done')
  and (last_outcome is null or last_outcome in ('done', 'failed', 'cancelled', 'lost'))
  and (last_started_at is null) = (last_outcome is null)
  and unmet between 0 and dependencies
  and (unmet > 0 or resting_state <> 'waiting_dependency')
  and (parked is null or (parked in ('batch', 'session') and resting_state = 'queued'))
  and (parked is distinct from 'batch' or batch is not null)
  and num_nulls(session, place) in (0, 2)
  and (origin is null or origin in ('message', 'run'))
  and retry_count >= 0
  and preemptions_left >= 0) not valid;

alter table line add constraint line_check check (
  waiting >= 0 and ready between 0 and waiting and inflight >= 0
  and parked between 0 and waiting
  and exempt between 0 and waiting
  and (ready = 0) = (head_seq is null)
  and room between 0 and ready
  and startable = (room > 0)) not valid;

alter table lane add constraint lane_check check (
  (total is null or total > 0) and (per_agent is null or per_agent > 0)
  and strategy in ('fair-fifo', 'priority-fifo')
  and waiting >= 0 and inflight >= 0
  and exempt between 0 and waiting
  and aging_ms >= 0 and tenants >= 0) not valid;

alter table lease add constraint lease_check check (
  state in ('assigned', 'running') and attempt > 0 and (tenant is null) = (priority is null)) not valid;
