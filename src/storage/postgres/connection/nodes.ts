import type { NodeLane, NodeStorage } from "../../storage.ts";
import { PREEMPT } from "../tasks/preempt-tasks.ts";
import { abilityValues } from "./abilities.ts";
import type { PostgresDatabase } from "./database.ts";
import { warmUpStatement } from "./warm-up.ts";

export function postgresNodes(db: PostgresDatabase): NodeStorage {
  return {
    async register({ node, version = null, slots = {}, perTenant = {}, abilities }) {
      const capacity = [JSON.stringify(slots), JSON.stringify(perTenant)];
      await db.write({
        name: "register_node",
        text: "select register_node($1, $2, $3, $4, $5, $6, $7, $8)",
        values: [node, version, ...capacity, ...abilityValues(abilities)],
      });
      // Nodes that were alone must learn that they no longer are.
      db.signalOthers({ kind: "work" });
      const [lane] = Object.keys(slots);
      if (lane !== undefined) void db.warmUp(warmUpStatement({ node, lane, abilities }));
    },
    async setSlots({ node, slots, perTenant = {}, draining = false }) {
      await db.write({
        name: "set_slots",
        text: "select set_slots($1, $2, $3, $4, $5)",
        values: [node, JSON.stringify(slots), JSON.stringify(perTenant), draining],
      });
    },
    async setAbilities({ node, abilities }) {
      await db.write({
        name: "set_abilities",
        text: "select set_abilities($1, $2, $3, $4, $5)",
        values: [node, ...abilityValues(abilities)],
      });
      db.signal({ kind: "work" });
    },
    async heartbeat({ node }) {
      const [row] = await db.writeFirst<{
        alive: boolean;
        seqs: string[];
        tokens: string[];
        others: boolean;
      }>({
        name: "heartbeat",
        text: "select * from heartbeat($1, $2)",
        values: [node],
      });
      if (row?.alive) db.setOthersAlive(row.others);
      const held = row?.seqs.map((seq, index) => ({ seq: Number(seq), token: Number(row.tokens[index]) }));
      return { alive: row?.alive ?? false, held: held ?? [] };
    },
    async list() {
      const rows = await db.read<{ id: string; beat: string; dead: boolean }>({
        name: "list_nodes",
        text: "select id, beat, dead from node order by id",
        values: [],
      });
      return rows.map(({ id, beat, dead }) => ({ node: id, beat: Number(beat), dead }));
    },
    async details() {
      const rows = await db.read<DetailsRow>({ name: "node_details", text: DETAILS, values: [] });
      return rows.map((row) => ({
        node: row.id,
        version: row.version,
        startedAt: row.started_at === null ? null : Number(row.started_at),
        seenAt: Number(row.beat_at),
        dead: row.dead,
        draining: row.draining,
        lanes: row.lanes,
      }));
    },
    async markDead({ node, beat }) {
      const rows = await db.write({
        name: "mark_dead",
        text: "select 1 from mark_dead($1, $2, $3) as marked where marked",
        values: [node, beat],
      });
      return rows.length === 1;
    },
    async remove({ node }) {
      await db.write({ name: "remove_node", text: "select remove_node($1, $2)", values: [node] });
    },
  };
}

interface DetailsRow {
  readonly id: string;
  readonly version: string | null;
  readonly started_at: string | null;
  readonly beat_at: string;
  readonly dead: boolean;
  readonly draining: boolean;
  readonly lanes: readonly NodeLane[];
}

const DETAILS = `
  with running as (
    select l.node, n.lane, count(*) as running from lease l join line n on n.id = l.line
     where l.state = 'running' group by l.node, n.lane)
  select d.id, d.version, d.started_at, d.beat_at, d.dead, d.draining,
         coalesce((select json_agg(json_build_object('lane', lane, 'slots', coalesce(s.slots, 0),
                                                     'running', coalesce(r.running, 0)) order by lane)
                     from (select * from node_slot where node = d.id) s
                     full join (select * from running where node = d.id) r using (lane)
                    where coalesce(s.slots, 0) + coalesce(r.running, 0) > 0), '[]') as lanes
    from node d order by d.id`;

export const NODE_FUNCTIONS = `
create function register_node(
  p_now bigint, p_node text, p_version text, p_slots json, p_per_tenant json, p_profile text, p_kinds text[], p_agents json)
returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_less_served boolean;
begin
  insert into node (id, beat_at, version, started_at) values (p_node, v_now, p_version, v_now);
  perform save_slots(p_node, p_slots, p_per_tenant);
  v_less_served := save_abilities(v_now, p_node, p_profile, p_kinds, p_agents);
  -- Another node with the same abilities changes nothing.
  perform 1 from node where profile = p_profile and not dead and id <> p_node;
  if not found or v_less_served then perform abilities_changed(v_now, v_less_served); end if;
end $$;

create function set_abilities(p_now bigint, p_node text, p_profile text, p_kinds text[], p_agents json)
returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
begin
  perform 1 from node where id = p_node and not dead;
  if not found then return; end if;
  perform abilities_changed(v_now, save_abilities(v_now, p_node, p_profile, p_kinds, p_agents));
end $$;

create function set_slots(p_now bigint, p_node text, p_slots json, p_per_tenant json, p_draining boolean)
returns void language plpgsql as $$
declare
  v_now bigint := take_write_lock(p_now);
begin
  perform recheck_lanes_of_node(p_node);
  update node set draining = p_draining where id = p_node and draining <> p_draining;
  delete from node_slot where node = p_node;
  perform save_slots(p_node, p_slots, p_per_tenant);
  ${PREEMPT}
end $$;

-- Critical tasks may wait in vain for one of these slots.
create function recheck_lanes_of_node(p_node text) returns void language plpgsql as $$
begin
  perform defer_work('lanes_to_recheck', array(select s.lane from node_slot s where s.node = p_node));
end $$;

-- For a registered node.
create function save_slots(p_node text, p_slots json, p_per_tenant json) returns void language plpgsql as $$
begin
  insert into node_slot (node, lane, slots, per_tenant)
  select n.id, s.key, s.value::integer, (p_per_tenant ->> s.key)::integer from node n cross join json_each_text(p_slots) s where n.id = p_node;
end $$;

-- Renewing does not take the write lock: it must succeed while many writers wait, and it changes only the node's own row.
create function heartbeat(p_now bigint, p_node text)
returns table (alive boolean, seqs bigint[], tokens bigint[], others boolean) language plpgsql as $$
#variable_conflict use_column
begin
  set local synchronous_commit = off;
  update node set beat = beat + 1,
                  beat_at = coalesce(p_now, floor(extract(epoch from clock_timestamp()) * 1000)::bigint)
   where id = p_node and not dead;
  if not found then return query select false, '{}'::bigint[], '{}'::bigint[], true; return; end if;
  return query
    select true, coalesce(array_agg(task_seq order by task_seq), '{}'), coalesce(array_agg(token order by task_seq), '{}'),
           exists (select 1 from node where id <> p_node and not dead)
      from lease where node = p_node;
end $$;

-- After this commits, the node can end nothing: ends check that the node is alive, under the same write lock.
create function mark_dead(p_now bigint, p_node text, p_beat bigint) returns boolean language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
begin
  update node set dead = true where id = p_node and beat = p_beat and not dead;
  if not found then return false; end if;
  perform remember_agents(v_now, p_node);
  perform 1 from node d join node n on n.profile = d.profile and not n.dead where d.id = p_node;
  if not found then perform abilities_changed(v_now, false); end if;
  perform recheck_lanes_of_node(p_node);
  ${PREEMPT}
  return true;
end $$;

create function remove_node(p_now bigint, p_node text) returns void language plpgsql as $$
#variable_conflict use_column
begin
  perform take_write_lock(p_now);
  delete from node where id = p_node and dead and not exists (select 1 from lease where node = p_node);
  if found then perform forget_profiles(); end if;
end $$;
`;
