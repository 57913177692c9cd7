alter table task add column batch text collate "C";         -- handed in together with others; null: by itself
alter table task add column callback_url text;              -- where its end is told; null: nobody asked
create index task_by_batch on task (batch, seq) where batch is not null;

-- What else the catalogue says of an agent, as JSON; null: it is not in the catalogue.
alter table agent add column definition text;

-- A callback to be made, written by the transaction that ends its task.
create table delivery (
  seq              bigint primary key,             -- number of the event that tells of the end
  tenant           text collate "C" not null,
  task_seq         bigint not null,
  url              text not null,
  -- The end it tells of: the task may be retried before it is told.
  task_state       text collate "C" not null check (task_state in ('done', 'failed', 'cancelled')),
  task_error       text,
  task_retries     integer not null,
  task_attempts    integer not null,
  created_at       bigint not null,
  status           text collate "C" not null default 'pending' check (status in ('pending', 'delivered', 'failed')),
  tries            integer not null default 0 check (tries >= 0),
  due_at           bigint,
  last_try_at      bigint,
  response_status  integer,
  error            text,
  check ((status = 'pending') = (due_at is not null))
);

create index delivery_due on delivery (due_at, seq) where due_at is not null;
create index delivery_by_task on delivery (task_seq, seq);
create index delivery_by_status on delivery (tenant, status, seq);
