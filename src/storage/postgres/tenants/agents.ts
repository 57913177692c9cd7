import type { AgentName } from "../../../model/agent.ts";
import {
  AGENT_CHANGES_KEPT,
  type AgentRecord,
  type AgentStorage,
  ALL_AGENTS,
  type CatalogueChanges,
} from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { preemptAt } from "../tasks/preempt-tasks.ts";

/** Limits of agents, and their catalogue. A row without a definition only has a limit. */
export function postgresAgents(db: PostgresDatabase): AgentStorage {
  return {
    async configure({ tenant, agent, maxInflight }) {
      await db.write({
        name: "configure_agent",
        text: "select configure_agent($1, $2, $3, $4)",
        values: [tenant, agent, maxInflight],
      });
      db.signal({ kind: "work" });
    },
    bounded: () =>
      db.read<AgentName>({
        name: "bounded_agents",
        text: `select tenant, agent from agent
                where definition is null and max_inflight is not null order by tenant, agent`,
        values: [],
      }),
    create: (record) => change(db, "create_agent", toValues(record)),
    update: (record) => change(db, "update_agent", toValues(record)),
    delete: ({ tenant, agent }) => change(db, "delete_agent", [tenant, agent]),
    async list() {
      const rows = await db.read<ListedRow>({
        name: "list_agents",
        text: `select tenant, agent, max_inflight, definition from agent
                where definition is not null order by tenant, agent`,
        values: [],
      });
      return rows.map(toRecord);
    },
    async changes({ since, limit }) {
      const changed = since === null ? null : await readChanges(db, since, limit);
      return changed ?? readWhole(db);
    },
    async isKnown({ tenant, agent }) {
      const rows = await db.read({
        name: "is_known_agent",
        text: `select 1 where exists (select 1 from agent where tenant = $1 and agent = $2 and definition is not null)
                  or exists (select 1 from profile_agent x join node n on n.profile = x.profile where x.agent = $2 and not n.dead)
                  or exists (select 1 from agent_seen where agent = $2)
                  or exists (select 1 from worker_agent where tenant = $1 and agent = $2)
                  or exists (select 1 from worker_agent_seen where tenant = $1 and agent = $2)`,
        values: [tenant, agent],
      });
      return rows.length > 0;
    },
    async knownNames({ tenant, limit }) {
      const rows = await db.read<{ agent: string }>({
        name: "known_agents",
        text: `select agent from agent where tenant = $1 and definition is not null
               union select x.agent from profile_agent x join node n on n.profile = x.profile where not n.dead
               union select agent from worker_agent where tenant = $1 and agent <> '${ALL_AGENTS}'
               union select agent from worker_agent_seen where tenant = $1
               union select agent from agent_seen order by agent limit $2`,
        values: [tenant, limit],
      });
      return rows.map(({ agent }) => agent);
    },
    async forget() {
      await db.write({ name: "forget_agents", text: "select forget_agents($1)", values: [] });
    },
  };
}

interface ListedRow {
  readonly tenant: string;
  readonly agent: string;
  readonly max_inflight: number | null;
  readonly definition: string;
}

function toRecord({ tenant, agent, max_inflight: maxInflight, definition }: ListedRow): AgentRecord {
  return { tenant, agent, maxInflight, definition: JSON.parse(definition) };
}

/** A row without an agent only has `last`. */
type ChangeRow = Partial<ListedRow> & { readonly seq: string | null; readonly last: string };

/** Null: the changes since then are no longer known. */
async function readChanges(
  db: PostgresDatabase,
  since: number,
  limit: number,
): Promise<CatalogueChanges | null> {
  const rows = await db.read<ChangeRow>({
    name: "agent_changes",
    text: `select l.last, c.seq, c.tenant, c.agent, a.max_inflight, a.definition
             from (select coalesce(max(seq), 0) as last from agent_change) l
             left join lateral (select * from agent_change where seq > $1 order by seq limit $2) c on true
             left join agent a on a.tenant = c.tenant and a.agent = c.agent order by c.seq`,
    values: [since, limit],
  });
  const last = Number(rows[0]?.last);
  if (since > last || since < last - AGENT_CHANGES_KEPT) return null;
  const changes = rows.filter(({ seq }) => seq !== null);
  const isListed = (row: ChangeRow): row is ChangeRow & ListedRow => (row.definition ?? null) !== null;
  return {
    whole: false,
    agents: changes.filter(isListed).map(toRecord),
    gone: changes
      .filter((row) => !isListed(row) && row.agent !== "")
      .map(({ tenant, agent }) => ({ tenant: tenant as string, agent: agent as string })),
    goneTenants: changes.filter(({ agent }) => agent === "").map(({ tenant }) => tenant as string),
    last: Number(changes.at(-1)?.seq ?? since),
    more: changes.length === limit,
  };
}

async function readWhole(db: PostgresDatabase): Promise<CatalogueChanges> {
  const rows = await db.read<Partial<ListedRow> & { readonly last: string }>({
    name: "agents_and_last_change",
    text: `select l.last, a.tenant, a.agent, a.max_inflight, a.definition
             from (select coalesce(max(seq), 0) as last from agent_change) l
             left join agent a on a.definition is not null order by a.tenant, a.agent`,
    values: [],
  });
  const agents = rows.filter(({ tenant }) => (tenant ?? null) !== null) as unknown as ListedRow[];
  return {
    whole: true,
    agents: agents.map(toRecord),
    gone: [],
    goneTenants: [],
    last: Number(rows[0]?.last),
    more: false,
  };
}

async function change(
  db: PostgresDatabase,
  name: "create_agent" | "update_agent" | "delete_agent",
  values: readonly unknown[],
): Promise<boolean> {
  const parameters = values.map((_, index) => `, $${index + 2}`).join("");
  const [row] = await db.write<{ done: boolean }>({
    name,
    text: `select ${name}($1${parameters}) as done`,
    values,
  });
  if (row?.done !== true) return false;
  db.signal({ kind: "agents" });
  db.signal({ kind: "work" });
  return true;
}

function toValues({ tenant, agent, maxInflight, definition }: AgentRecord): unknown[] {
  return [tenant, agent, maxInflight, JSON.stringify(definition)];
}

export const AGENT_FUNCTIONS = `
create function configure_agent(p_now bigint, p_tenant text, p_agent text, p_max integer) returns void
language plpgsql as $$
begin
  perform save_bound(take_write_lock(p_now), p_tenant, p_agent, p_max);
end $$;

-- The slots that the agent's tasks wait for may be free now, or gone.
create function save_bound(p_now bigint, p_tenant text, p_agent text, p_max integer) returns void language plpgsql as $$
#variable_conflict use_column
begin
  insert into agent (tenant, agent, max_inflight) values (p_tenant, p_agent, p_max)
  on conflict (tenant, agent) do update set max_inflight = excluded.max_inflight;
  update line set agent_max = p_max where tenant = p_tenant and agent = p_agent;
  perform refresh_startable(array(select id from line where tenant = p_tenant and agent = p_agent));
  perform defer_work('lanes_to_recheck', array(select lane from line where tenant = p_tenant and agent = p_agent));
  ${preemptAt("p_now")}
end $$;

create function is_listed(p_tenant text, p_agent text) returns boolean language plpgsql stable as $$
begin
  return exists (select 1 from agent where tenant = p_tenant and agent = p_agent and definition is not null);
end $$;

create function save_agent(p_now bigint, p_tenant text, p_agent text, p_max integer, p_definition text) returns void
language plpgsql as $$
begin
  perform save_bound(p_now, p_tenant, p_agent, p_max);
  update agent set definition = p_definition where tenant = p_tenant and agent = p_agent;
  perform agent_changed(p_now, p_tenant, p_agent);
end $$;

create function create_agent(p_now bigint, p_tenant text, p_agent text, p_max integer, p_definition text)
returns boolean language plpgsql as $$
declare
  v_now bigint := take_write_lock(p_now);
begin
  if is_listed(p_tenant, p_agent) then return false; end if;
  perform save_agent(v_now, p_tenant, p_agent, p_max, p_definition);
  return true;
end $$;

create function update_agent(p_now bigint, p_tenant text, p_agent text, p_max integer, p_definition text)
returns boolean language plpgsql as $$
declare
  v_now bigint := take_write_lock(p_now);
begin
  if not is_listed(p_tenant, p_agent) then return false; end if;
  perform save_agent(v_now, p_tenant, p_agent, p_max, p_definition);
  return true;
end $$;

create function delete_agent(p_now bigint, p_tenant text, p_agent text) returns boolean language plpgsql as $$
declare
  v_now bigint := take_write_lock(p_now);
begin
  if not is_listed(p_tenant, p_agent) then return false; end if;
  perform save_bound(v_now, p_tenant, p_agent, null);
  delete from agent where tenant = p_tenant and agent = p_agent;
  perform agent_changed(v_now, p_tenant, p_agent);
  return true;
end $$;
`;
