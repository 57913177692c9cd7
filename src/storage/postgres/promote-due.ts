import type { PostgresDatabase } from "./database.ts";

/** Moves delayed tasks whose moment has come into the queue. */
export async function promoteDue(
  db: PostgresDatabase,
  params: { limit: number },
): Promise<{ promoted: number }> {
  const [row] = await db.write<{ promoted: number }>({
    name: "promote_due",
    text: "select promote_due($1, $2) as promoted",
    values: [params.limit],
  });
  const promoted = row?.promoted ?? 0;
  if (promoted > 0) db.signal({ kind: "work" });
  return { promoted };
}

/** The earliest moment at which something delayed may start or something waiting is overdue. */
export async function nextDueAt(db: PostgresDatabase): Promise<number | null> {
  const [row] = await db.read<{ due: string | null }>({
    name: "next_due_at",
    text: `select least(
             (select due_at from task where due_at is not null order by due_at limit 1),
             (select t.expires_at from task t
               where t.expires_at is not null and not exists (select 1 from lease l where l.task_seq = t.seq)
               order by t.expires_at limit 1)) as due`,
    values: [],
  });
  return row === undefined || row.due === null ? null : Number(row.due);
}

export const PROMOTE_FUNCTIONS = `
create function promote_due(p_now bigint, p_limit integer) returns integer language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := enter(p_now);
  v_seqs bigint[];
  v_deltas line_delta[];
  v_tenants text[];
begin
  v_seqs := array(
    select seq from task where due_at <= v_now order by due_at, seq limit p_limit);
  if cardinality(v_seqs) = 0 then return 0; end if;
  with due as (
    update task set resting_state = 'queued' where seq = any (v_seqs) returning seq, tenant, line, rank),
  placed as (insert into ready (line, rank, task_seq) select line, rank, seq from due)
  select array_agg(row(line, 0, 1, 0, null, rank, seq)::line_delta), array_agg(tenant)
    into v_deltas, v_tenants from due;
  perform apply_deltas(v_deltas);
  perform count_moves(v_tenants, array_fill('delayed'::text, array[cardinality(v_seqs)]),
                      array_fill('queued'::text, array[cardinality(v_seqs)]));
  return cardinality(v_seqs);
end $$;
`;
