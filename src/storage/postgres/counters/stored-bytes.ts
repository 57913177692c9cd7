import type { CounterFault } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { type FaultRow, toFault } from "./recount.ts";

/** The triggers of migration 017 that count the stored bytes of tasks. */
const TRIGGERS = ["count_stored_tasks", "count_changed_tasks", "count_deleted_tasks"];

/** Counts the stored bytes anew, beside the counters, while tasks change. Counters that differ at the end are wrong. */
export async function recountStored(
  db: PostgresDatabase,
  params: { readonly limit: number; readonly onSlice: (tasks: number) => Promise<void> },
): Promise<CounterFault[]> {
  const kept = await db.read({ name: "any_stored", text: "select 1 from stored_bytes limit 1", values: [] });
  if (kept.length === 0) return [];
  await db.write({ name: "begin_recount_stored", text: "select begin_recount_stored($1)", values: [] });
  try {
    for (let more = true; more; ) {
      const [row] = await db.write<{ more: boolean }>({
        name: "count_stored",
        text: "select count_stored($1, $2) as more",
        values: [params.limit],
      });
      more = row?.more === true;
      await params.onSlice(more ? params.limit : 0);
    }
    const rows = await db.read<FaultRow>({
      name: "compare_stored",
      text: `select 'stored bytes of ' || k.tenant as counter, k.bytes::text as stored, r.bytes::text as counted
               from stored_bytes k join stored_bytes r on r.tenant = k.tenant and r.is_recount and r.counted_to is null
              where not k.is_recount and k.bytes <> r.bytes order by k.tenant`,
      values: [],
    });
    return rows.map(toFault);
  } finally {
    await db.write({ name: "end_recount_stored", text: "select end_recount_stored($1)", values: [] });
  }
}

function switchAll(action: "enable" | "disable"): string {
  return TRIGGERS.map((trigger) => `alter table task ${action} trigger ${trigger};`).join("\n    ");
}

export const STORED_BYTES_FUNCTIONS = `
-- Starts to count the stored bytes of a tenant, or stops. count_stored counts the tasks that exist already. While no tenant
-- has a limit, the triggers are off, so that inserts cost nothing extra.
create function keep_stored_bytes(p_tenant text) returns void language plpgsql as $$
declare
  v_before boolean := exists (select 1 from stored_bytes);
begin
  if exists (select 1 from tenant where id = p_tenant and max_stored_bytes is not null) then
    insert into stored_bytes (tenant) values (p_tenant) on conflict do nothing;
  else
    delete from stored_bytes where tenant = p_tenant;
  end if;
  if exists (select 1 from stored_bytes) = v_before then return; end if;
  if v_before then
    ${switchAll("disable")}
  else
    ${switchAll("enable")}
  end if;
end $$;

-- Counts up to p_limit tasks that existed before. Returns whether there are more.
create function count_stored(p_now bigint, p_limit integer) returns boolean language plpgsql as $$
declare
  v_next stored_bytes;
  v_tasks integer;
  v_last bigint;
  v_bytes bigint;
begin
  if not exists (select 1 from stored_bytes where counted_to is not null) then return false; end if;
  perform take_write_lock(p_now);
  select * into v_next from stored_bytes where counted_to is not null limit 1;
  if not found then return false; end if;
  select count(*), max(t.seq), coalesce(sum(t.bytes), 0) into v_tasks, v_last, v_bytes
    from (select seq, case when tenant = v_next.tenant then task_bytes(spec, result, error) else 0 end as bytes
            from task where seq > v_next.counted_to order by seq limit p_limit) t;
  update stored_bytes
     set bytes = bytes + v_bytes, counted_to = case when v_tasks = p_limit then v_last end
   where tenant = v_next.tenant and is_recount = v_next.is_recount;
  return exists (select 1 from stored_bytes where counted_to is not null);
end $$;

create function begin_recount_stored(p_now bigint) returns void language plpgsql as $$
begin
  perform take_write_lock(p_now);
  delete from stored_bytes where is_recount;
  insert into stored_bytes (tenant, is_recount) select tenant, true from stored_bytes;
end $$;

create function end_recount_stored(p_now bigint) returns void language plpgsql as $$
begin
  perform take_write_lock(p_now);
  delete from stored_bytes where is_recount;
end $$;
`;
