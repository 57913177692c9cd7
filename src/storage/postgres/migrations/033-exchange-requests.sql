-- Exchanges that found another one at work. The next exchange at work does these as well, in one step, and leaves the results
-- here for the nodes that asked. Unlogged: after a crash of the server the nodes ask again.
create unlogged table exchange_request (
  node            text collate "C" not null,
  number          bigint not null,                 -- given by the node: a request that is repeated keeps its number
  asked_at        bigint not null,
  functions       text collate "C" not null,       -- schema of the functions that read it: other versions leave it alone
  alone           boolean not null default false,  -- a step that included it failed
  -- Attempts that have ended, with their results; more: other values of some of them, by token.
  seqs            bigint[] not null,
  tokens          bigint[] not null,
  results         text[] not null,
  more            json,
  progress        json,
  -- Assigned attempts that have begun.
  begun           bigint[],
  begun_tokens    bigint[],
  begun_at        bigint[],
  begun_waves     integer[],
  waves           integer[],                       -- of the ends
  -- How many tasks to start in each lane.
  lanes           text[] not null,
  limits          integer[] not null,
  "each"          integer[] not null,
  "left"          text[] not null,
  states          text[],
  ahead           integer[],
  -- The result; null until it is there.
  served_at       bigint,
  lost            bigint[],
  started_seqs    bigint[],
  started_tokens  bigint[],
  started_states  text[],
  critical_waits  text[],
  primary key (node, number)
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
