import type { Strategy } from "../../model/lane.ts";
import type { AgentStorage, LaneStorage } from "../storage.ts";
import type { PostgresDatabase } from "./database.ts";

export function postgresLanes(db: PostgresDatabase): LaneStorage {
  return {
    async configure({ lanes }) {
      const rows = lanes.map(({ name, total, perAgent, strategy }) => ({
        name,
        total,
        per_agent: perAgent,
        strategy,
      }));
      await db.write({
        name: "configure_lanes",
        text: "select configure_lanes($1, $2)",
        values: [JSON.stringify(rows)],
      });
      db.signal({ kind: "work" });
    },
    async list() {
      const rows = await db.read<{
        name: string;
        total: number | null;
        per_agent: number | null;
        strategy: Strategy;
        waiting: number;
        inflight: number;
      }>({
        name: "list_lanes",
        text: "select name, total, per_agent, strategy, waiting, inflight from lane order by name",
        values: [],
      });
      return rows.map(({ per_agent: perAgent, ...lane }) => ({ ...lane, perAgent }));
    },
  };
}

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
  };
}

/** A changed limit changes which lines can start something. */
export const LIMIT_FUNCTIONS = `
create function configure_lanes(p_now bigint, p_lanes json) returns void language plpgsql as $$
#variable_conflict use_column
begin
  perform enter(p_now);
  insert into lane (name, total, per_agent, strategy)
  select * from json_to_recordset(p_lanes) as j(name text, total integer, per_agent integer, strategy text)
  on conflict (name) do update
    set total = excluded.total, per_agent = excluded.per_agent, strategy = excluded.strategy;
  perform refresh_startable(array(
    select n.id from line n join json_to_recordset(p_lanes) as j(name text) on j.name = n.lane));
end $$;

create function configure_agent(p_now bigint, p_tenant text, p_agent text, p_max integer) returns void
language plpgsql as $$
#variable_conflict use_column
begin
  perform enter(p_now);
  insert into agent (tenant, agent, max_inflight) values (p_tenant, p_agent, p_max)
  on conflict (tenant, agent) do update set max_inflight = excluded.max_inflight;
  update line set agent_max = p_max where tenant = p_tenant and agent = p_agent;
  perform refresh_startable(array(select id from line where tenant = p_tenant and agent = p_agent));
end $$;
`;
