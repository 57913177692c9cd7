import type { RescuedTasks, TaskPlace } from "../storage.ts";
import type { PostgresDatabase } from "./database.ts";
import { PREEMPT } from "./preempt-tasks.ts";
import { RELEASED_MAX } from "./settle-moves.ts";

/** Takes back attempts of a node that is dead: to the queue while the task has retries left, else it fails. */
export async function rescueTasks(
  db: PostgresDatabase,
  params: { node: string; limit: number },
): Promise<RescuedTasks> {
  const rows = await db.write<TaskPlace & { state: "queued" | "failed" }>({
    name: "rescue_tasks",
    text: "select * from rescue_tasks($1, $2, $3)",
    values: [params.node, params.limit],
  });
  if (rows.length > 0) {
    db.signal({ kind: "events" });
    db.signal({ kind: "work" });
    db.signal({ kind: "due" });
  }
  const places = (wanted: "queued" | "failed") =>
    rows.filter(({ state }) => state === wanted).map(({ tenant, agent, lane }) => ({ tenant, agent, lane }));
  return { requeued: places("queued"), failed: places("failed") };
}

export const RESCUE_FUNCTIONS = `
create function rescue_tasks(p_now bigint, p_node text, p_limit integer)
returns table (state text, tenant text, agent text, lane text) language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := enter(p_now);
  v_ended ended_attempt[];
begin
  perform 1 from node where id = p_node and dead;
  if not found then return; end if;
  with chosen as (select task_seq from lease where node = p_node order by task_seq limit p_limit),
  gone as (
    delete from lease l using chosen c, task t
     where l.task_seq = c.task_seq and t.seq = c.task_seq
    returning l.*, t.retry_count < t.max_retries_if_lost as rescuable)
  select array_agg(row(task_seq, task_seq, token, node, line, attempt, started_at,
                       case when rescuable then 'queued' else 'failed' end, 'lost', rescuable, null, 'worker lost',
                       v_now, null, null, null, null, null)::ended_attempt)
    into v_ended from gone;
  if v_ended is null then return; end if;
  perform end_attempts(v_now, v_ended);
  perform settle_moves(v_now, ${RELEASED_MAX});
  ${PREEMPT}
  return query
    select e.state, n.tenant, n.agent, n.lane from unnest(v_ended) e join line n on n.id = e.line order by e.task_seq;
end $$;
`;
