-- As in 006: writers that know nothing of this would admit messages that a running attempt has taken.
select pg_advisory_xact_lock(7682);
do $$
declare
  v_schema text;
begin
  for v_schema in select nspname from pg_namespace where nspname like 'rota\_fn\_%' loop
    execute format('drop schema %I cascade', v_schema);
  end loop;
end $$;

alter table session
  drop constraint session_mode_check,
  add constraint session_mode_check check (mode in ('queue', 'followup', 'interrupt', 'steer', 'collect'));

-- Of a message: until when a running attempt of its session may take it, null: it may not; the task whose attempt has taken it;
-- and how many characters it has, if later messages may be added to it while it waits.
alter table turn
  add column steer_until bigint,
  add column taken_by bigint,
  add column collected_length integer;
create index turn_steered on turn (session, place) where steer_until is not null;

-- Whether the answers of its runs are added to its session, and the runs themselves are in a session of the schedule.
alter table schedule add column post_to_session boolean not null default false;
