-- As in 006: writers that know nothing of this would start tasks whose key another has.
select pg_advisory_xact_lock(7682);
lock table task in access exclusive mode;
do $$
declare
  v_schema text;
begin
  for v_schema in select nspname from pg_namespace where nspname like 'rota\_fn\_%' loop
    execute format('drop schema %I cascade', v_schema);
  end loop;
end $$;

-- Tasks of a tenant with the same key run one at a time; null: it has none. parked may be 'key' now: another task has its
-- key; and, inside a transaction, 'asking': only the key is missing, and whether it gets that has yet to be decided.
alter table task
  add column concurrency_key text collate "C",
  drop constraint task_check;
-- Not validated: every row has passed the check before this one.
alter table task add constraint task_check check (
  resting_state in ('waiting_dependency', 'delayed', 'queued', 'done', 'failed', 'cancelled', 'rejected')
  and (resting_state in ('done', 'failed', 'cancelled', 'rejected')) = (completed_at is not null)
  and (resting_state <> 'delayed' or run_at is not null)
  and (result is null or resting_state = 'done')
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
  and preemptions_left >= 0) not valid;

create index task_waiting_for_key on task (tenant, concurrency_key, rank, seq) where parked = 'key';

-- Who has a key: the one task with it that is ready or in flight. A key that nobody wants has no row.
create table key_hold (
  tenant     text collate "C" not null,
  key        text collate "C" not null,
  task_seq   bigint not null,
  -- Whether a task of another line waits, or has waited, for it: a claim looks whether the holder can start. Those it looked
  -- at last come last.
  contested  boolean not null default false,
  looked_at  bigint not null default 0,
  primary key (tenant, key)
) with (fillfactor = 50);
create index key_contested on key_hold (looked_at, tenant, key) where contested;
alter table key_hold set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 10000, autovacuum_vacuum_cost_delay = 0);
