import type { Strategy } from "../../model/lane.ts";
import { FRONT_RANK } from "../../model/priority.ts";
import type { LaneStorage } from "../storage.ts";
import type { PostgresDatabase } from "./database.ts";
import { PREEMPT } from "./preempt-tasks.ts";
import { RANK_IN_ITS_LANE } from "./rank.ts";

export function postgresLanes(db: PostgresDatabase): LaneStorage {
  return {
    async configure({ lanes }) {
      const rows = lanes.map(({ name, total, perAgent, strategy, agingMs }) => ({
        name,
        total,
        per_agent: perAgent,
        strategy,
        aging_ms: agingMs,
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
        aging_ms: string;
        waiting: number;
        inflight: number;
      }>({
        name: "list_lanes",
        text: "select name, total, per_agent, strategy, aging_ms, waiting, inflight from lane order by name",
        values: [],
      });
      return rows.map(({ per_agent: perAgent, aging_ms: agingMs, ...lane }) => ({
        ...lane,
        perAgent,
        agingMs: Number(agingMs),
      }));
    },
  };
}

/** A changed limit changes which lines can start something, and changed ageing their order. */
export const LANE_FUNCTIONS = `
create function configure_lanes(p_now bigint, p_lanes json) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := enter(p_now);
  v_reordered text[];
begin
  v_reordered := array(
    select l.name from lane l join json_to_recordset(p_lanes) as j(name text, aging_ms bigint) on j.name = l.name
     where l.aging_ms <> j.aging_ms);
  insert into lane (name, total, per_agent, strategy, aging_ms)
  select * from json_to_recordset(p_lanes)
                  as j(name text, total integer, per_agent integer, strategy text, aging_ms bigint)
  on conflict (name) do update
    set total = excluded.total, per_agent = excluded.per_agent, strategy = excluded.strategy,
        aging_ms = excluded.aging_ms;
  if cardinality(v_reordered) > 0 then perform put_in_order(v_reordered); end if;
  perform refresh_startable(array(
    select n.id from line n join json_to_recordset(p_lanes) as j(name text) on j.name = n.lane));
  perform add_note('lanes', array(select j.name from json_to_recordset(p_lanes) as j(name text)));
  ${PREEMPT}
end $$;

-- Ranks anew what has not ended in these lanes. Critical tasks need no ageing, and who had to give way stays in front. Costs
-- what waits there, and what is delayed or waits for others with the same tenants.
create function put_in_order(p_lanes text[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_lines bigint[] := array(select id from line where lane = any (p_lanes));
  v_tenants text[] := array(select distinct tenant from line where lane = any (p_lanes));
  v_ready bigint[];
begin
  with gone as (delete from ready where line = any (v_lines) and rank > ${FRONT_RANK} returning task_seq)
  select coalesce(array_agg(task_seq), '{}') into v_ready from gone;
  update task t set rank = ${RANK_IN_ITS_LANE}
   where t.rank > ${FRONT_RANK} and t.line = any (v_lines) and t.seq in (
     select unnest(v_ready)
     union all select task_seq from lease where line = any (v_lines)
     union all select seq from task where tenant = any (v_tenants) and parked is not null
     union all select seq from task
                where tenant = any (v_tenants) and listed_state in ('waiting_dependency', 'delayed'));
  insert into ready (line, rank, task_seq) select line, rank, seq from task where seq = any (v_ready);
  update line n
     set (head_rank, head_seq) = (
           select r.rank, r.task_seq from ready r where r.line = n.id order by r.rank, r.task_seq limit 1)
   where n.id = any (v_lines) and n.ready > 0;
end $$;
`;
