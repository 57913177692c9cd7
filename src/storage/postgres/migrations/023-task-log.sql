-- As in 006: writers that know nothing of this would delete tasks and leave what they logged.
select pg_advisory_xact_lock(7682);
do $$
declare
  v_schema text;
begin
  for v_schema in select nspname from pg_namespace where nspname like 'rota\_fn\_%' loop
    execute format('drop schema %I cascade', v_schema);
  end loop;
end $$;

-- What executors log, in pieces as they were written together. Older pieces of an attempt are deleted when it has too many.
create table task_log (
  task_seq  bigint not null,
  attempt   integer not null check (attempt > 0),
  last_n    integer not null,                      -- the number of its last line; they go up by one within a piece
  count     integer not null check (count > 0 and count <= last_n),
  bytes     integer not null,
  lines     text not null,                         -- a JSON array of [at, level, text]
  primary key (task_seq, attempt, last_n)
);
