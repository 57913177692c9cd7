import type { TerminalState } from "../../../model/task-state.ts";
import type { CancelledTask, TaskLabels } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { cleanText } from "../connection/text.ts";
import { PREEMPT } from "./preempt-tasks.ts";
import { isOf } from "./read-tasks.ts";
import { RELEASED_MAX } from "./settle-moves.ts";

/** Ends tasks, waiting or running, and fences the attempts of those that run. */
export async function cancelTasks(
  db: PostgresDatabase,
  params: { tenant: string; ids: readonly string[]; error: string | null },
): Promise<CancelledTask[]> {
  const rows = await db.write<CancelledRow>({
    name: "cancel_tasks",
    text: "select * from cancel_tasks($1, $2, $3, $4)",
    values: [params.tenant, params.ids, params.error === null ? null : cleanText(params.error)],
  });
  const byId = new Map(rows.map((row) => [row.id, row]));
  const tokens = rows.flatMap(({ token }) => (token === null ? [] : [Number(token)]));
  if (rows.some(({ was }) => was === null)) {
    db.signal({ kind: "events" });
    // A slot of a lane or a batch, an agent's limit or a lane's total may have become free.
    db.signal({ kind: "work" });
  }
  if (tokens.length > 0) db.signal({ kind: "fenced", tokens, reason: "cancelled" });
  return params.ids.map((id, index): CancelledTask => {
    const row = byId.get(id);
    if (row === undefined) return { id, found: false };
    if (row.was !== null) return { id, found: true, was: row.was };
    if (params.ids.indexOf(id) < index) return { id, found: true, was: "cancelled" };
    return {
      id,
      found: true,
      was: null,
      token: row.token === null ? null : Number(row.token),
      agent: row.agent,
      lane: row.lane,
    };
  });
}

interface CancelledRow extends TaskLabels {
  readonly id: string;
  readonly was: TerminalState | null;
  readonly token: string | null;
}

export const CANCEL_FUNCTIONS = `
create function cancel_tasks(p_now bigint, p_tenant text, p_ids text[], p_error text)
returns table (id text, was text, token bigint, agent text, lane text) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_seqs bigint[];
begin
  return query
    select t.id, case when t.completed_at is not null then t.resting_state end, l.token, n.agent, n.lane
      from task t
     -- Looked up: a plan with joins, made while there are few tasks, would read all of them when there are many.
     cross join lateral (select agent, lane from line where id = t.line offset 0) n
      left join lateral (select token from lease where task_seq = t.seq offset 0) l on true
     where t.id = any (p_ids) and ${isOf("t", "p_tenant")};
  v_seqs := array(
    select t.seq from task t where t.id = any (p_ids) and ${isOf("t", "p_tenant")} and t.completed_at is null
     order by array_position(p_ids, t.id));
  if v_seqs = '{}' then perform flush_with_commit(); end if;
  perform cancel_open_tasks(v_now, v_seqs, p_error);
  perform settle_moves(v_now, ${RELEASED_MAX});
  ${PREEMPT}
end $$;
`;
