-- Writers of a version that knows nothing of this must not go on: they would leave the new counters as they are. What
-- is under way ends first, and then their functions are gone; see functions.ts.
select pg_advisory_xact_lock(7682);
do $$
declare
  v_schema text;
begin
  for v_schema in select nspname from pg_namespace where nspname like 'rota\_fn\_%' loop
    execute format('drop schema %I cascade', v_schema);
  end loop;
end $$;

-- A slot that was taken from a running task is one more start that may go ahead of fairness: it is counted off
-- beforehand, even below nothing.
alter table lane
  add column aging_ms bigint not null default 0 check (aging_ms >= 0),
  drop constraint lane_ahead_streak_check,
  add check (ahead_streak <= 7);

-- Ranks leave room in front of what is not critical: a task that had to give way goes there. See rankOf.
update task set rank = priority + 1 where priority > 0 and completed_at is null;
update ready set rank = rank + 1 where rank > 0;
update line set head_rank = head_rank + 1 where head_rank > 0;

-- Of full agents and of what is not critical, choosing who needs a slot sees nothing.
create index line_with_criticals on line (lane, tenant, head_rank, head_seq) where startable and head_rank <= 0;

alter table task
  add column parked text collate "C",              -- queued, but not ready: what holds it; null: nothing does
  add column preemptions_left smallint not null default 0 check (preemptions_left >= 0),
  -- What its attempts told of their cost; null: none did.
  add column input_tokens bigint,
  add column output_tokens bigint,
  add column context_window bigint,
  add check (parked is null or (parked in ('batch', 'session') and resting_state = 'queued')),
  add check (parked is distinct from 'batch' or batch is not null);

create index task_parked on task (tenant, batch, rank, seq) where parked is not null;

-- Tasks handed in together. A row goes with the last of them.
create table batch (
  id            text collate "C" primary key,
  tenant        text collate "C" not null,
  parallelism   integer check (parallelism > 0),   -- how many may be active; null: no bound
  callback_url  text,                              -- where it is told that all have ended; null: nobody asked
  created_at    bigint not null,
  completed_at  bigint,                            -- when all had ended for the first time
  active        integer not null default 0 check (active >= 0),      -- ready or held
  open          integer not null default 0 check (open >= active),   -- not ended
  check (active <= parallelism)
) with (fillfactor = 50);

insert into batch (id, tenant, created_at, completed_at, active, open)
select batch, min(tenant), min(created_at), case when count(*) = count(completed_at) then max(completed_at) end,
       count(*) filter (where resting_state = 'queued'), count(*) - count(completed_at)
  from task where batch is not null group by batch;

-- What choosing whose attempt is taken looks at. tenant, priority: null where it must not be.
alter table lease
  add column lane text collate "C",
  add column tenant text collate "C",
  add column priority integer,
  add check ((tenant is null) = (priority is null));
update lease l set lane = n.lane from line n where n.id = l.line;
alter table lease alter column lane set not null;

create index lease_to_take on lease (lane, tenant, priority desc, token desc) where priority is not null;
create index lease_to_take_by_line on lease (line, priority desc, token desc) where priority is not null;

alter table attempt
  drop constraint attempt_outcome_check,
  add check (outcome in ('done', 'failed', 'cancelled', 'interrupted', 'preempted', 'lost'));

-- How many tasks of each lane a node runs at once.
create table node_slot (
  node   text collate "C" not null references node on delete cascade,
  lane   text collate "C" not null,
  slots  integer not null check (slots >= 0),
  primary key (node, lane)
);

-- A delivery tells of the end of a task, or of its batch: then the task is the last that was accepted of it.
alter table delivery
  add column batch_counts text,                    -- as JSON, how many ended in which state; null: it tells of the task
  alter column task_state drop not null,
  alter column task_retries drop not null,
  alter column task_attempts drop not null,
  add check ((batch_counts is null) = (task_state is not null));

alter table batch set (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
