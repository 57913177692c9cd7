import type { TenantSlots } from "../../storage.ts";

/** How many slots of a lane each tenant may still take: p_each and p_left of the functions below. */
export function slotValues(perTenant: TenantSlots | undefined): { each: number | null; left: string | null } {
  if (perTenant === undefined) return { each: null, left: null };
  const { max, left } = perTenant;
  return { each: max, left: left.size === 0 ? null : JSON.stringify(Object.fromEntries(left)) };
}

/** How many of them tenant `t`, a row of `tenant_line`, may take; null: no limit. */
export function leftFor(t: string): string {
  return `coalesce((p_left ->> ${t}.tenant)::integer, p_each)`;
}

/** Slots of a node that a tenant holds in the lane p_lane. */
const HELD = `(select count(*) from lease h join line n on n.id = h.line
                where h.lane = p_lane and h.node = s.node and n.tenant = p_tenant)`;

export const TENANT_SHARE_FUNCTIONS = `
-- Applies the shares of lanes, or stops to, by the number of enabled tenants. Returns whether that changed, and with it
-- what tenants can start.
create function apply_second_tenant() returns boolean language plpgsql as $$
declare
  v_second boolean := exists (select 1 from tenant where not disabled offset 1);
begin
  update lane set second_tenant = v_second where second_tenant <> v_second;
  if not found then return false; end if;
  perform apply_lane_max(array(select name from lane));
  return true;
end $$;

-- Updates what tenants may hold of these lanes, and so what they can start there.
create function apply_lane_max(p_lanes text[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_tenants text[];
begin
  with changed as (
    update tenant_line t set lane_max = case when l.second_tenant then l.per_tenant end
      from lane l
     where l.name = t.lane and l.name = any (p_lanes)
       and t.lane_max is distinct from case when l.second_tenant then l.per_tenant end
    returning t.tenant)
  select array_agg(distinct tenant) into v_tenants from changed;
  if v_tenants is not null then perform refresh_tenants(v_tenants); end if;
end $$;

-- What tenants may take of the free slots of a lane on these nodes, by the current leases; null: no limit.
create function slots_on_nodes(p_lane lane, p_nodes text[], out p_each integer, out p_left jsonb)
language plpgsql stable as $$
#variable_conflict use_column
begin
  if not (p_lane).second_tenant then return; end if;
  with node as (
    select s.node, s.per_tenant, s.slots - (select count(*) from lease h where h.lane = s.lane and h.node = s.node) as free
      from node_slot s where s.lane = (p_lane).name and s.node = any (p_nodes)),
  held as (
    select l.node, n.tenant, count(*) as held
      from lease l join line n on n.id = l.line where l.lane = (p_lane).name and l.node = any (p_nodes)
     group by l.node, n.tenant)
  select coalesce(sum(greatest(least(d.free, d.per_tenant), 0)), 0),
         (select jsonb_object_agg(tenant, slots)
            from (select t.tenant, sum(greatest(least(d.free, d.per_tenant - coalesce(h.held, 0)), 0)) as slots
                    from (select distinct tenant from held) t cross join node d
                    left join held h on h.node = d.node and h.tenant = t.tenant group by t.tenant) t)
    into p_each, p_left from node d;
end $$;

-- What tenants may still take after these tasks of theirs have started.
create function slots_after(p_each integer, p_left jsonb, p_seqs bigint[]) returns jsonb language plpgsql stable as $$
#variable_conflict use_column
begin
  return coalesce(p_left, '{}') || coalesce(
    (select jsonb_object_agg(t.tenant, ${leftFor("t")} - t.starts)
       from (select t.tenant, count(*) as starts from task t where t.seq = any (p_seqs) group by t.tenant) t), '{}');
end $$;

-- The nodes among these that would let a tenant fill a slot that one of its own tasks frees: the tenant holds no more than
-- its share there.
create function nodes_within_share(p_lane text, p_tenant text, p_nodes text[]) returns text[]
language plpgsql stable as $$
begin
  return array(
    select s.node from node_slot s
     where s.lane = p_lane and s.node = any (p_nodes) and (s.per_tenant < ${HELD}) is not true);
end $$;

-- What a tenant holds of a lane and may hold, if it holds its whole share: over all nodes, or on every node with a free
-- slot.
create function lane_share(p_lane text, p_tenant text) returns json language plpgsql stable as $$
declare
  v_share json;
begin
  select json_build_object('inflight', t.inflight, 'max', t.lane_max) into v_share
    from tenant_line t where t.lane = p_lane and t.tenant = p_tenant and t.inflight >= t.lane_max;
  if found then return v_share; end if;
  perform 1 from lane l where l.name = p_lane and l.second_tenant;
  if not found then return null; end if;
  select case when bool_and(coalesce(s.held >= s.per_tenant, false))
              then json_build_object('inflight', sum(s.held), 'max', sum(s.per_tenant)) end
    into v_share
    from (select s.per_tenant, ${HELD} as held
            from node_slot s join node d on d.id = s.node and not d.dead
           where s.lane = p_lane
             and s.slots > (select count(*) from lease h where h.lane = p_lane and h.node = s.node)) s;
  return v_share;
end $$;
`;
