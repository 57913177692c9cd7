-- The task that the first submit with a key made; the row goes with its task.
create table idempotency_key (
  tenant      text collate "C" not null,
  key         text collate "C" not null,
  hash        text not null,                       -- of what was asked for
  task_seq    bigint not null unique,
  created_at  bigint not null,
  primary key (tenant, key)
);
