-- As in 006: writers that know nothing of this would let more runs of a schedule wait than may, and make more schedules than a
-- tenant may have.
select pg_advisory_xact_lock(7682);
do $$
declare
  v_schema text;
begin
  for v_schema in select nspname from pg_namespace where nspname like 'rota\_fn\_%' loop
    execute format('drop schema %I cascade', v_schema);
  end loop;
end $$;

-- The schedules of one tenant in the order in which they are due: of many that are due at the same moment, only as many are
-- read as are taken.
drop index schedule_next;
create index schedule_next on schedule (tenant, (next_fire_at + 0), id) where next_fire_at is not null;
