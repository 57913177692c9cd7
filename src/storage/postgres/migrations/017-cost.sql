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
-- long as there is such a tenant. counted_to: the last task that is counted; null: all are. is_recount: counted anew, to be
-- compared.
create table stored_bytes (
  tenant      text collate "C" not null,
  is_recount  boolean not null default false,
  bytes       bigint not null default 0 check (bytes >= 0),
  counted_to  bigint default 0,
  primary key (tenant, is_recount)
) with (fillfactor = 50);

create function task_bytes(p_spec text, p_result text, p_error text) returns bigint language sql immutable as $$
  select 1024::bigint + octet_length(p_spec) + coalesce(octet_length(p_result), 0) + coalesce(octet_length(p_error), 0)
$$;

create function count_stored_tasks() returns trigger language plpgsql as $$
begin
  update rota.stored_bytes s set bytes = s.bytes + d.bytes
    from (select k.tenant, k.is_recount, sum(rota.task_bytes(t.spec, t.result, t.error)) as bytes
            from rota.stored_bytes k
            join added t on t.tenant = k.tenant and (k.counted_to is null or t.seq <= k.counted_to)
           group by k.tenant, k.is_recount) d
   where s.tenant = d.tenant and s.is_recount = d.is_recount;
  return null;
end $$;

create function count_changed_tasks() returns trigger language plpgsql as $$
begin
  update rota.stored_bytes s set bytes = s.bytes + d.bytes
    from (select k.tenant, k.is_recount,
                 sum(rota.task_bytes(n.spec, n.result, n.error) - rota.task_bytes(o.spec, o.result, o.error)) as bytes
            from rota.stored_bytes k
            join now n on n.tenant = k.tenant and (k.counted_to is null or n.seq <= k.counted_to)
            join before o on o.seq = n.seq
           group by k.tenant, k.is_recount) d
   where s.tenant = d.tenant and s.is_recount = d.is_recount and d.bytes <> 0;
  return null;
end $$;

create function count_deleted_tasks() returns trigger language plpgsql as $$
begin
  update rota.stored_bytes s set bytes = s.bytes - d.bytes
    from (select k.tenant, k.is_recount, sum(rota.task_bytes(t.spec, t.result, t.error)) as bytes
            from rota.stored_bytes k
            join removed t on t.tenant = k.tenant and (k.counted_to is null or t.seq <= k.counted_to)
           group by k.tenant, k.is_recount) d
   where s.tenant = d.tenant and s.is_recount = d.is_recount;
  return null;
end $$;

create trigger count_stored_tasks after insert on task referencing new table as added
  for each statement execute function count_stored_tasks();
create trigger count_changed_tasks after update on task referencing old table as before new table as now
  for each statement execute function count_changed_tasks();
create trigger count_deleted_tasks after delete on task referencing old table as removed
  for each statement execute function count_deleted_tasks();
alter table task disable trigger count_stored_tasks;
alter table task disable trigger count_changed_tasks;
alter table task disable trigger count_deleted_tasks;
