-- As in 006: writers that know nothing of this would hand out as any other what has to run alone.
select pg_advisory_xact_lock(7682);
do $$
declare
  v_schema text;
begin
  for v_schema in select nspname from pg_namespace where nspname like 'rota\_fn\_%' loop
    execute format('drop schema %I cascade', v_schema);
  end loop;
end $$;

-- How often the process that ran a task died with it.
alter table task add column losses integer not null default 0;
-- Tasks that run alone in their process are in lines of their own, which are never startable; see alone-line.ts.
create index line_alone on line (last_served, id) where left(kind, 6) = 'alone:';
