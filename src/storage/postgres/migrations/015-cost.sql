-- What changed in the catalogue of agents, each agent once, by its last change: so that a node reads what it does not know
-- yet, and not all of it. The newest 10000 are kept. Whoever changes an agent has the write lock: numbers are in commit order.
create sequence agent_change_seq;
create table agent_change (
  seq     bigint primary key,
  tenant  text collate "C" not null,
  agent   text collate "C" not null,
  unique (tenant, agent)
);

create function note_agent_change() returns trigger language plpgsql set search_path = rota, pg_temp as $$
declare
  v_seq bigint := nextval('agent_change_seq');
begin
  insert into agent_change (seq, tenant, agent) values (v_seq, coalesce(new.tenant, old.tenant), coalesce(new.agent, old.agent))
  on conflict (tenant, agent) do update set seq = excluded.seq;
  delete from agent_change where seq <= v_seq - 10000;
  return null;
end $$;

create trigger agent_listed after insert on agent for each row when (new.definition is not null)
  execute function note_agent_change();
create trigger agent_changed after update of definition on agent for each row
  when (new.definition is distinct from old.definition) execute function note_agent_change();
create trigger agent_unlisted after delete on agent for each row when (old.definition is not null)
  execute function note_agent_change();

-- Null: no bound of its own.
alter table tenant
  add column max_agents        integer check (max_agents >= 0),
  add column max_stored_bytes  bigint check (max_stored_bytes >= 0);

-- What the tasks of a tenant take, of those tenants for which it is bounded. Triggers on task keep it, which are enabled only as
-- long as there is such a tenant. counted_to: the last task that is counted; null: all are.
create table stored_bytes (
  tenant      text collate "C" primary key,
  bytes       bigint not null default 0 check (bytes >= 0),
  counted_to  bigint
) with (fillfactor = 50);
