-- Processes elsewhere that pull tasks.
create table worker (
  id             text collate "C" primary key,
  tenant         text collate "C" not null,
  instance       text collate "C",                 -- identifies the process; null: nothing does
  key            text collate "C",                 -- the API key that registered it; null: there are no keys
  name           text collate "C" not null,
  agents         text[] collate "C" not null,      -- {*}: all that it may run
  slots          integer not null check (slots > 0),
  labels         json not null,
  version        text,
  runtime        text,
  lease_ms       integer not null,
  heartbeat_ms   integer not null,
  draining       boolean not null default false,
  lost           boolean not null default false,
  beat           bigint not null default 0,        -- grows with every sign of life
  registered_at  bigint not null,
  seen_at        bigint not null,
  polled_at      bigint
) with (fillfactor = 50);
create index worker_of_tenant on worker (tenant, name, id);
create unique index worker_by_instance on worker (tenant, instance) where instance is not null;

-- The agents of live workers.
create table worker_agent (
  tenant  text collate "C" not null,
  agent   text collate "C" not null,
  worker  text collate "C" not null,
  primary key (tenant, agent, worker)
);
create index worker_agent_by_worker on worker_agent (worker);

-- Agents of workers that are gone, and when the last of these was live.
create table worker_agent_seen (
  tenant  text collate "C" not null,
  agent   text collate "C" not null,
  at      bigint not null,
  primary key (tenant, agent)
);

-- Attempts that were assigned to workers. They stay for a while after they ended.
create table worker_attempt (
  hash            text collate "C" primary key,    -- of the token that the worker has
  nonce           text not null,                   -- with the id of the claim, what the token is made of
  worker          text collate "C" not null,
  claim           text collate "C" not null,       -- a hash of the id of the claim
  tenant          text collate "C" not null,
  task_id         text collate "C" not null,
  task_seq        bigint not null,
  token           bigint not null,                 -- the fencing token, as in lease
  number          integer not null,
  assigned_at     bigint not null,
  times_out_at    bigint,
  deadline        bigint,
  unnamed_until   bigint,                          -- the worker has to name it before; null: it has
  missed          integer not null default 0,      -- heartbeats in a row that left it out
  input_tokens    bigint,
  output_tokens   bigint,
  context_tokens  bigint,
  context_window  bigint,
  recorded        boolean not null default false,  -- whether its worker reported its end
  ended_at        bigint                           -- when it was found to have ended; null: not yet
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
create index worker_attempt_by_claim on worker_attempt (worker, claim);
create index worker_attempt_by_token on worker_attempt (token);
create index worker_attempt_ended on worker_attempt (ended_at) where ended_at is not null;

-- How many attempts of a worker ended, by minute.
create table worker_minute (
  worker  text collate "C" not null,
  minute  bigint not null,
  done    integer not null default 0,
  failed  integer not null default 0,
  primary key (worker, minute)
);

-- For a key of the role `worker`: its agents.
alter table api_key add column agents text[];
