-- Actions on many tasks that are carried out in slices.
create table bulk (
  id            text primary key,
  tenant        text not null,
  action        text not null check (action in ('cancel', 'retry', 'delete')),
  filter        text,
  selection     text,
  ids           text,
  max_tasks     integer not null,
  matched       integer not null,
  last_seq      integer not null,
  cursor        integer not null,
  requested_by  text,
  requested_at  integer not null,
  state         text not null default 'running' check (state in ('running', 'done', 'aborted')),
  done          integer not null default 0,
  failed        integer not null default 0,
  skipped       integer not null default 0,
  -- In which order bulk actions had their turns.
  served        integer not null default 0,
  lease_until   integer
) strict;
create index bulk_running on bulk (tenant, served) where state = 'running';
create index bulk_ended on bulk (tenant, requested_at, id) where state <> 'running';
