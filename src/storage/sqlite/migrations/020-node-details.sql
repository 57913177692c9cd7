-- What the list of nodes shows. Null: registered by a Rota that did not write it down.
alter table node add column version text;
alter table node add column started_at integer;
-- It runs what it has to the end, and takes nothing more.
alter table node add column draining integer not null default 0 check (draining in (0, 1));
