-- Exchanges that found another one at work. Whichever exchange is at work next does these as well, in one step, and leaves the
-- results here for the nodes that asked. Unlogged: after a crash of the server the nodes ask again.
create unlogged table exchange_request (
  node        text collate "C" not null,
  number      bigint not null,                     -- given by the node: the same request has the same number when it is repeated
  functions   text collate "C" not null,           -- schema of the functions that read it: other versions leave it alone
  alone       boolean not null default false,      -- a step that included it failed
  seqs        bigint[],
  tokens      bigint[],
  results     text[],
  more        json,
  progress    json,
  lanes       text[] not null,
  limits      integer[] not null,
  "each"      integer[] not null,
  "left"      text[] not null,
  -- Null until it is served. seqs, results, more and progress are null from then on.
  served_at   bigint,
  lost        bigint[],
  started_seqs   bigint[],
  started_tokens bigint[],
  primary key (node, number)
) with (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_cost_delay = 0);
