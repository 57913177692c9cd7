import type { DueRow, RewindParams, ScheduleName } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { cleanText } from "../connection/text.ts";

export async function dueRows(
  db: PostgresDatabase,
  { tenant, id, after, limit }: ScheduleName & { after: number; limit: number },
): Promise<DueRow[]> {
  const rows = await db.read<{
    id: string;
    first_due_at: string;
    due_at: string;
    moments: number;
    started: boolean;
  }>({
    name: "due_rows",
    text: `select id, first_due_at, due_at, moments, started_at is not null as started
             from run where schedule = $2 and due_at > $3 and not forced and (tenant = $1) is true
            order by due_at limit $4`,
    values: [tenant, id, after, limit],
  });
  return rows.map((row) => ({
    runId: Number(row.id),
    firstDueAt: Number(row.first_due_at),
    dueAt: Number(row.due_at),
    moments: row.moments,
    started: row.started,
  }));
}

/** Undoes what was written for due times that are later than the database's clock. */
export async function rewindSchedule(db: PostgresDatabase, params: RewindParams): Promise<boolean> {
  const { tenant, id, revision, nextFireAt, reopens } = params;
  const rows = params.rows.map(({ runId, firstDueAt, dueAt, moments }) => ({
    id: runId,
    first_due_at: firstDueAt,
    due_at: dueAt,
    moments,
  }));
  const missed = params.missed.map(({ firstDueAt, dueAt, moments, reason }, n) => ({
    n,
    schedule: id,
    first_due_at: firstDueAt,
    due_at: dueAt,
    moments,
    reason: cleanText(reason),
  }));
  const [answer] = await db.write<{ rewound: boolean }>({
    name: "rewind_schedule",
    text: "select rewind_schedule($1, $2, $3, $4, $5, $6, $7, $8) as rewound",
    values: [tenant, id, revision, JSON.stringify(rows), JSON.stringify(missed), nextFireAt, reopens],
  });
  if (answer?.rewound !== true) return false;
  db.signal({ kind: "schedules" });
  return true;
}

export const REWIND_FUNCTIONS = `
create type rewound_row as (id bigint, first_due_at bigint, due_at bigint, moments integer);

create function rewind_schedule(
  p_now bigint, p_tenant text, p_id bigint, p_revision bigint, p_rows json, p_missed json, p_next_fire_at bigint, p_reopens boolean)
returns boolean language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := enter(p_now);
  v_missed bigint[];
  v_rows rewound_row[] := array(select r from json_populate_recordset(null::rewound_row, p_rows) r);
begin
  perform 1 from schedule s where s.id = p_id and (s.tenant = p_tenant) is true and s.revision = p_revision;
  if not found then return false; end if;
  if exists (
    select 1 from unnest(v_rows) w
     where not exists (
       select 1 from run r where r.id = w.id and r.schedule = p_id and not r.forced and r.due_at > v_now)) then
    return false;
  end if;
  -- First what goes: what stays may get a due time that it had.
  delete from run where id = any (array(select w.id from unnest(v_rows) w where w.moments = 0));
  update run r set first_due_at = w.first_due_at, due_at = w.due_at, moments = w.moments
    from unnest(v_rows) w where r.id = w.id and w.moments > 0;
  with added as (
    insert into run (id, tenant, schedule, agent, due_at, first_due_at, moments, forced, status, reason, completed_at)
    select nextval('run_id'), s.tenant, s.id, s.agent, m.due_at, m.first_due_at, m.moments, false, 'missed', m.reason, v_now
      from schedule s cross join json_populate_recordset(null::new_run, p_missed) m where s.id = p_id order by m.n
    returning id)
  select array_agg(id order by id) into v_missed from added;
  if v_missed is not null then perform tell_of_runs(v_now, v_missed); end if;
  update schedule s
     set status = case when p_reopens then 'active' else s.status end,
         updated_at = case when p_reopens then v_now else s.updated_at end,
         last_error = case when p_reopens and s.last_status = 'missed' then null else s.last_error end,
         last_status = case when p_reopens and s.last_status = 'missed' then null else s.last_status end,
         next_fire_at = case when p_reopens or s.status = 'active' then p_next_fire_at end,
         revision = s.revision + 1,
         last_due_at = (select max(r.due_at) from run r where r.schedule = p_id and not r.forced)
   where s.id = p_id;
  return true;
end $$;
`;
