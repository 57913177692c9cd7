-- PostgreSQL reads and plans every check anew for each statement that writes, however few rows it writes. For long ones, that was a
-- sixth of the processor time of a submit. A function is compiled once for each connection. The rules are the same as before.
create function lane_is_valid(
  total integer, per_agent integer, per_tenant integer, strategy text, waiting integer, inflight integer, exempt integer, aging_ms bigint,
  tenants integer)
returns boolean language plpgsql immutable parallel safe as $$
begin
  return (total is null or total > 0) and (per_agent is null or per_agent > 0) and (per_tenant is null or per_tenant > 0)
    and strategy in ('fair-fifo', 'priority-fifo')
    and waiting >= 0 and inflight >= 0
    and exempt between 0 and waiting
    and aging_ms >= 0 and tenants >= 0;
end $$;

create function tenant_line_is_valid(
  waiting integer, exempt integer, inflight integer, supply bigint, urgent_lines integer, owed integer, ahead_streak integer,
  startable boolean, disabled boolean)
returns boolean language plpgsql immutable parallel safe as $$
begin
  return exempt between 0 and waiting and inflight >= 0
    and urgent_lines between 0 and supply
    and owed >= 0 and ahead_streak <= 7
    and (not startable or (supply > 0 and not disabled));
end $$;

create function line_is_valid(
  waiting integer, ready integer, inflight integer, parked integer, exempt integer, head_seq bigint, room integer, startable boolean,
  standing integer)
returns boolean language plpgsql immutable parallel safe as $$
begin
  return waiting >= 0 and ready between 0 and waiting and inflight >= 0
    and parked between 0 and waiting
    and exempt between 0 and waiting
    and (ready = 0) = (head_seq is null)
    and room between 0 and ready
    and startable = (room > 0)
    and standing between 0 and 2
    and (standing = 0 or room = 0);
end $$;

create function task_is_valid(
  resting_state text, completed_at bigint, run_at bigint, result_is_null boolean, last_outcome text, last_started_at bigint, unmet integer,
  dependencies integer, parked text, batch text, concurrency_key text, session bigint, place bigint, origin text, retry_count integer,
  preemptions_left integer, full_queue text)
returns boolean language plpgsql immutable parallel safe as $$
begin
  return resting_state in ('waiting_dependency', 'delayed', 'queued', 'done', 'failed', 'cancelled', 'rejected')
    and (resting_state in ('done', 'failed', 'cancelled', 'rejected')) = (completed_at is not null)
    and (resting_state <> 'delayed' or run_at is not null)
    and (result_is_null or resting_state = 'done')
    and (last_outcome is null or last_outcome in ('done', 'failed', 'cancelled', 'lost'))
    and (last_started_at is null) = (last_outcome is null)
    and unmet between 0 and dependencies
    and (unmet > 0 or resting_state <> 'waiting_dependency')
    and (parked is null or (parked in ('batch', 'asking', 'key') and resting_state = 'queued'))
    and (parked is distinct from 'batch' or batch is not null)
    and (parked is null or parked = 'batch' or concurrency_key is not null)
    and num_nulls(session, place) in (0, 2)
    and (origin is null or origin in ('message', 'run'))
    and retry_count >= 0
    and preemptions_left >= 0
    and (full_queue is null or (resting_state = 'rejected' and full_queue in ('agent', 'global', 'server')));
end $$;

-- What is under way ends first, and nobody who writes comes in between: they would take the tables in another order.
select pg_advisory_xact_lock(7682);
lock table task, line, tenant_line, lane in access exclusive mode;

-- Not validated: every row has passed the same rules, and there may be millions.
alter table task drop constraint task_check, drop constraint task_full_queue;
-- The first part is for tasks that are merely queued or done. It takes less time than calling a function: one statement may write
-- a thousand.
alter table task add constraint task_check check (
  (least(unmet, dependencies - unmet, retry_count, preemptions_left) >= 0 and num_nonnulls(parked, session, place, origin, full_queue) = 0
   and case num_nonnulls(completed_at, last_started_at, last_outcome) when 0 then resting_state = 'queued' and result is null
                                                                      when 3 then resting_state = 'done' and last_outcome = 'done'
                                                                      else false end)
  or task_is_valid(
  resting_state, completed_at, run_at, result is null, last_outcome, last_started_at, unmet, dependencies, parked, batch, concurrency_key,
  session, place, origin, retry_count, preemptions_left, full_queue)) not valid;
alter table line drop constraint line_check;
alter table line add constraint line_check check (line_is_valid(
  waiting, ready, inflight, parked, exempt, head_seq, room, startable, standing)) not valid;
alter table tenant_line drop constraint tenant_line_check;
alter table tenant_line add constraint tenant_line_check check (tenant_line_is_valid(
  waiting, exempt, inflight, supply, urgent_lines, owed, ahead_streak, startable, disabled)) not valid;
alter table lane drop constraint lane_check;
alter table lane add constraint lane_check check (lane_is_valid(
  total, per_agent, per_tenant, strategy, waiting, inflight, exempt, aging_ms, tenants)) not valid;
