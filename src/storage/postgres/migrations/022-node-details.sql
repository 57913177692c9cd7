-- What the list of nodes shows. Null: registered by a Rota that did not write it down.
alter table node
  add column version text,
  add column started_at bigint,
  -- It runs what it has to the end, and takes nothing more.
  add column draining boolean not null default false;
