-- Processes elsewhere that pull tasks.
create table worker (
  id             text primary key,
  tenant         text not null,
  instance       text,                             -- identifies the process; null: nothing does
  key            text,                             -- the API key that registered it; null: there are no keys
  name           text not null,
  agents         text not null,                    -- a JSON array; ["*"]: all that it may run
  slots          integer not null check (slots > 0),
  labels         text not null,                    -- a JSON object
  version        text,
  runtime        text,
  lease_ms       integer not null,
  heartbeat_ms   integer not null,
  draining       integer not null default 0 check (draining in (0, 1)),
  lost           integer not null default 0 check (lost in (0, 1)),
  beat           integer not null default 0,       -- grows with every sign of life
  registered_at  integer not null,
  seen_at        integer not null,
  polled_at      integer
) strict;
create index worker_of_tenant on worker (tenant, name, id);
create unique index worker_by_instance on worker (tenant, instance) where instance is not null;

-- The agents of live workers.
create table worker_agent (
  tenant  text not null,
  agent   text not null,
  worker  text not null,
  primary key (tenant, agent, worker)
) strict, without rowid;
create index worker_agent_by_worker on worker_agent (worker);

-- Agents of workers that are gone, and when the last of these was live.
create table worker_agent_seen (
  tenant  text not null,
  agent   text not null,
  at      integer not null,
  primary key (tenant, agent)
) strict, without rowid;

-- Attempts that were assigned to workers. They stay for a while after they ended.
create table worker_attempt (
  hash            text primary key,                -- of the token that the worker has
  nonce           text not null,                   -- with the id of the claim, what the token is made of
  worker          text not null,
  claim           text not null,                   -- a hash of the id of the claim
  tenant          text not null,
  task_id         text not null,
  task_seq        integer not null,
  token           integer not null,                -- the fencing token, as in lease
  number          integer not null,
  assigned_at     integer not null,
  times_out_at    integer,
  deadline        integer,
  unnamed_until   integer,                         -- the worker has to name it before; null: it has
  missed          integer not null default 0,      -- heartbeats in a row that left it out
  input_tokens    integer,
  output_tokens   integer,
  context_tokens  integer,
  context_window  integer,
  recorded        integer not null default 0 check (recorded in (0, 1)),  -- whether its worker reported its end
  ended_at        integer                          -- when it was found to have ended; null: not yet
) strict;
create index worker_attempt_by_claim on worker_attempt (worker, claim);
create index worker_attempt_by_token on worker_attempt (token);
create index worker_attempt_ended on worker_attempt (ended_at) where ended_at is not null;

-- How many attempts of a worker ended, by minute.
create table worker_minute (
  worker  text not null,
  minute  integer not null,
  done    integer not null default 0,
  failed  integer not null default 0,
  primary key (worker, minute)
) strict, without rowid;

-- For a key of the role `worker`: its agents, as a JSON array.
alter table api_key add column agents text;
