import type { PostgresDatabase } from "../connection/database.ts";
import { turnOf } from "../sessions/settle-sessions.ts";
import { parkedBy } from "./batches.ts";
import { PREEMPT } from "./preempt-tasks.ts";
import { signalReleased } from "./release.ts";
import { RELEASED_MAX } from "./settle-moves.ts";

/** Moves delayed tasks that are due into the queue. */
export async function promoteDue(
  db: PostgresDatabase,
  params: { limit: number },
): Promise<{ promoted: number }> {
  const [row] = await db.write<{ promoted: number; settled: boolean }>({
    name: "promote_due",
    text: "select * from promote_due($1, $2)",
    values: [params.limit],
  });
  const { promoted, settled } = row ?? { promoted: 0, settled: false };
  if (promoted > 0) db.signal({ kind: "work" });
  if (settled) signalReleased(db);
  return { promoted };
}

/** The earliest time at which a delayed task may start or a waiting one is overdue. */
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
create function promote_due(p_now bigint, p_limit integer) returns table (promoted integer, settled boolean)
language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_seqs bigint[];
  v_sessioned boolean;
  v_turns bigint[];
begin
  select coalesce(array_agg(seq order by due_at, seq), '{}'), bool_or(session is not null) into v_seqs, v_sessioned
    from (select seq, due_at, session from task where due_at <= v_now order by due_at, seq limit p_limit) d;
  promoted := cardinality(v_seqs);
  if v_sessioned then
    -- A task that its session admitted before has kept its position, unless fewer may run now.
    v_turns := array(
      select d.seq from unnest(v_seqs) with ordinality d(seq, n)
       cross join lateral (select session, place from task where seq = d.seq offset 0) t
       where ${turnOf("t", "early")} is not null order by d.n);
    v_seqs := array(select seq from unnest(v_seqs) d(seq) where seq <> all (v_turns));
    if cardinality(v_turns) > 0 then perform take_turns(v_now, v_turns); end if;
    perform defer_work('sessions', array(
      select t.session::text from unnest(v_seqs) d(seq)
       cross join lateral (select session from task where seq = d.seq offset 0) t where t.session is not null));
  end if;
  if cardinality(v_seqs) > 0 then perform enter_queue(v_seqs); end if;
  settled := settle_moves(v_now, ${RELEASED_MAX});
  ${PREEMPT}
  return next;
end $$;

-- Moves delayed tasks that no session holds back into the queue.
create function enter_queue(p_seqs bigint[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_deltas queue_delta[];
  v_batches batch_delta[];
  v_tenants text[];
  v_asking text[];
begin
  with due as (
    update task t set resting_state = 'queued', parked = ${parkedBy("t")}
     where t.seq = any (p_seqs) returning t.seq, t.tenant, t.line, t.rank, t.batch, t.parked),
  readied as (insert into ready (line, rank, task_seq) select line, rank, seq from due where parked is null)
  select array_agg(case when parked is null then row(line, 0, 0, 0, 1, 0, null, rank, seq)::queue_delta
                        else row(line, 0, 0, 1, 0, 0, null, null, null)::queue_delta end),
         array_agg(row(batch, (parked is distinct from 'batch')::integer, 0)::batch_delta) filter (where batch is not null),
         array_agg(tenant), array_agg(seq::text) filter (where parked = 'asking')
    into v_deltas, v_batches, v_tenants, v_asking from due;
  perform apply_deltas(v_deltas);
  if v_batches is not null then perform move_batches(v_batches); end if;
  if v_asking is not null then perform defer_work('keys', v_asking); end if;
  perform count_moves(v_tenants, array_fill('delayed'::text, array[cardinality(p_seqs)]),
                      array_fill('queued'::text, array[cardinality(p_seqs)]));
end $$;
`;
