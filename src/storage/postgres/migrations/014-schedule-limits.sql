-- As in 006: writers that know nothing of this would run a schedule more often than it may.
select pg_advisory_xact_lock(7682);
do $$
declare
  v_schema text;
begin
  for v_schema in select nspname from pg_namespace where nspname like 'rota\_fn\_%' loop
    execute format('drop schema %I cascade', v_schema);
  end loop;
end $$;

-- What the runs of a schedule are beside a message, and when a schedule has had enough.
alter table schedule
  add column work                  text,                   -- JSON; null: the message
  add column lane                  text,                   -- null: that of runs
  add column priority              integer,                -- null: the default
  add column metadata              text,                   -- JSON
  add column callback_url          text,
  add column max_runs              bigint check (max_runs > 0),
  add column until_at              bigint,                 -- the last moment that may fire
  add column pause_after_failures  integer check (pause_after_failures >= 0),
  add column consecutive_failures  integer not null default 0 check (consecutive_failures >= 0),
  add column paused_reason         text,
  add check (paused_reason is null or status = 'paused');
