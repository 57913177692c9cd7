-- What changed in the catalogue of agents, each agent once, by its last change: so that a node reads what it does not know
-- yet, and not all of it. The newest 10000 are kept.
create table agent_change (
  seq     integer primary key autoincrement,
  tenant  text not null,
  agent   text not null,
  unique (tenant, agent)
) strict;

create trigger agent_listed after insert on agent when new.definition is not null begin
  insert or replace into agent_change (tenant, agent) values (new.tenant, new.agent);
end;
create trigger agent_changed after update of definition on agent when new.definition is not old.definition begin
  insert or replace into agent_change (tenant, agent) values (new.tenant, new.agent);
end;
create trigger agent_unlisted after delete on agent when old.definition is not null begin
  insert or replace into agent_change (tenant, agent) values (old.tenant, old.agent);
end;
create trigger agent_change_kept after insert on agent_change begin
  delete from agent_change where seq <= new.seq - 10000;
end;

-- Null: no bound of its own.
alter table tenant add column max_agents integer check (max_agents >= 0);
alter table tenant add column max_stored_bytes integer check (max_stored_bytes >= 0);

-- What the tasks of a tenant take, of those tenants for which it is bounded. Triggers on task keep it, which are there only as
-- long as there is such a tenant. counted_to: the last task that is counted; null: all are. is_recount: counted anew, to be
-- compared.
create table stored_bytes (
  tenant      text not null,
  is_recount  integer not null default 0 check (is_recount in (0, 1)),
  bytes       integer not null default 0 check (bytes >= 0),
  counted_to  integer default 0,
  primary key (tenant, is_recount)
) strict, without rowid;
