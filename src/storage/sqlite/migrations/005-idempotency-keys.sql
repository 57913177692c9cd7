-- The task that the first submit with a key made; the row goes with its task.
create table idempotency_key (
  tenant      text not null,
  key         text not null,
  hash        text not null,                       -- of what was asked for
  task_seq    integer not null unique,
  created_at  integer not null,
  primary key (tenant, key)
) strict, without rowid;
