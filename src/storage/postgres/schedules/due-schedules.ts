import { inTurns } from "../../in-turns.ts";
import { DUE_BYTES, type DueParams, type ScheduleRecord } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { oneRow } from "../connection/one-row.ts";
import { SCHEDULE_BYTES, type ScheduleRow, toScheduleRecord } from "./schedule-row.ts";

export async function dueSchedules(
  db: PostgresDatabase,
  { limit, after = "" }: DueParams,
): Promise<ScheduleRecord[]> {
  const rows = await db.write<ScheduleRow>({
    name: "due_schedules",
    // The large texts of those that are left out are not read.
    text: `select d.* from (
             select s.*, row_number() over w as nth,
                    sum(${SCHEDULE_BYTES}) over w as up_to
               from due_schedules($1, $2, $3) s window w as (partition by tenant order by next_fire_at, id)) d
            where nth = 1 or up_to <= ${DUE_BYTES} order by next_fire_at, id`,
    values: [limit, after],
  });
  return inTurns(rows, after).map(toScheduleRecord);
}

/** The first tenant after `above` that has a schedule with a due time. */
function nextTenant(above: string): string {
  return oneRow(
    "n.tenant",
    "schedule n",
    `n.tenant > ${above} and n.next_fire_at is not null order by n.tenant, n.next_fire_at + 0, n.id limit 1`,
  );
}

/** When the next schedule is due, of all tenants or of one; null: none. */
export async function nextScheduleAt(
  db: PostgresDatabase,
  { tenant }: { tenant?: string } = {},
): Promise<number | null> {
  const [next] = await db.read<{ next_fire_at: string }>(
    tenant === undefined
      ? { name: "next_schedule", text: NEXT_SCHEDULE, values: [] }
      : { name: "next_schedule_of_tenant", text: NEXT_SCHEDULE_OF_TENANT, values: [tenant] },
  );
  return next === undefined ? null : Number(next.next_fire_at);
}

export const NEXT_SCHEDULE =
  "select next_fire_at from schedule where next_fire_at is not null order by next_fire_at, id limit 1";

export const NEXT_SCHEDULE_OF_TENANT = `select next_fire_at from schedule where tenant = $1 and next_fire_at is not null
                                           order by next_fire_at + 0, id limit 1`;

export const DUE_FUNCTIONS = `
-- The schedules of one tenant are in the order of their due times; the caller takes turns between tenants.
create function due_schedules(p_now bigint, p_limit integer, p_after text) returns setof schedule language plpgsql stable as $$
declare
  v_now bigint := coalesce(p_now, floor(extract(epoch from clock_timestamp()) * 1000)::bigint);
  v_tenants text[];
begin
  -- Tenants are searched only if more is due than fits: that takes a step for each tenant with schedules.
  if not exists (select 1 from schedule s where s.next_fire_at <= v_now order by s.next_fire_at, s.id limit 1 offset p_limit) then
    return query select * from schedule s where s.next_fire_at <= v_now order by s.next_fire_at, s.id;
    return;
  end if;
  v_tenants := due_tenants(v_now, p_after, null, p_limit);
  if cardinality(v_tenants) < p_limit then
    v_tenants := v_tenants || due_tenants(v_now, '', p_after, p_limit - cardinality(v_tenants));
  end if;
  return query
    select d.* from unnest(v_tenants) with ordinality t(id, ordinal)
     cross join ${oneRow(
       "*",
       "schedule s",
       `s.tenant = t.id and s.next_fire_at is not null and s.next_fire_at + 0 <= v_now
         order by s.next_fire_at + 0, s.id limit p_limit / cardinality(v_tenants)`,
     )} d;
end $$;

-- The tenants above p_above that have something due, up to p_up_to unless that is null. Steps from tenant to tenant through
-- the index, past the schedules of each.
create function due_tenants(p_now bigint, p_above text, p_up_to text, p_limit integer) returns text[]
language plpgsql stable as $$
begin
  return array(
    with recursive owner as (
      select f.tenant from ${nextTenant("p_above")} f
      union all
      select f.tenant from owner o cross join ${nextTenant("o.tenant")} f where o.tenant <= coalesce(p_up_to, o.tenant))
    select o.tenant from owner o
     cross join ${oneRow(
       "1",
       "schedule s",
       `s.tenant = o.tenant and s.next_fire_at is not null and s.next_fire_at + 0 <= p_now
         order by s.next_fire_at + 0, s.id limit 1`,
     )} d
     where o.tenant <= coalesce(p_up_to, o.tenant) limit p_limit);
end $$;
`;
