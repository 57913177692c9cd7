import type { Strategy } from "../../model/lane.ts";
import type { LaneStorage } from "../storage.ts";
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

/** A changed limit changes which lines can start something. */
export const LANE_FUNCTIONS = `
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
`;
