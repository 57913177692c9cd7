-- As in 006: writers that know nothing of this would leave the new column as it is.
select pg_advisory_xact_lock(7682);
do $$
declare
  v_schema text;
begin
  for v_schema in select nspname from pg_namespace where nspname like 'rota\_fn\_%' loop
    execute format('drop schema %I cascade', v_schema);
  end loop;
end $$;

-- The place that its last reset found: a task with a later one is of the generation that it began.
alter table session add column generation_place bigint not null default 0;
-- Of older resets only this is known: it was there, or a stop has moved it since.
update session set generation_place = cutoff where generation > 0;
