import type { TaskState } from "../../../model/task-state.ts";
import type { BlockingDependency, RetriedTask, RetryTaskParams } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { PREEMPT } from "./preempt-tasks.ts";
import { isOf } from "./read-tasks.ts";
import { isOverdue } from "./requeue-task.ts";
import { RELEASED_MAX } from "./settle-moves.ts";

/** Puts a failed or cancelled task back into the queue. */
export async function retryTask(db: PostgresDatabase, params: RetryTaskParams): Promise<RetriedTask> {
  const { tenant, id, dependants = false } = params;
  const [row] = await db.write<{
    was: TaskState | "overdue" | "blocked" | null;
    by_id: string | null;
    by_state: BlockingDependency["state"] | null;
    seq: string;
    state: "queued" | "delayed" | "waiting_dependency";
    position: number;
    created_at: string;
    run_at: string | null;
    deadline: string | null;
    unserved: boolean;
  }>({
    name: "retry_task",
    text: "select * from retry_task($1, $2, $3, $4)",
    values: [tenant, id, dependants],
  });
  if (row === undefined) return { found: false };
  if (row.was === "overdue") return { found: true, was: row.was };
  if (row.was === "blocked") {
    const { by_id: by, by_state: state } = row;
    return { found: true, was: row.was, by: by === null || state === null ? null : { id: by, state } };
  }
  if (row.was !== null) return { found: true, was: row.was };
  db.signal({ kind: "events" });
  db.signal({ kind: "work" });
  // Dependants that come back with it may have deadlines.
  if (row.deadline !== null || row.state === "delayed" || dependants) db.signal({ kind: "due" });
  return {
    found: true,
    was: null,
    task: {
      seq: Number(row.seq),
      id,
      state: row.state,
      position: row.position,
      createdAt: Number(row.created_at),
      runAt: row.run_at === null ? null : Number(row.run_at),
      deadline: row.deadline === null ? null : Number(row.deadline),
      rejection: null,
      repeats: null,
      ...(row.unserved ? { unserved: true as const } : {}),
    },
  };
}

export const RETRY_FUNCTIONS = `
create function retry_task(p_now bigint, p_tenant text, p_id text, p_dependants boolean)
returns table (was text, by_id text, by_state text, seq bigint, state text, "position" integer, created_at bigint,
               run_at bigint, deadline bigint, unserved boolean)
language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := enter(p_now);
  v_task task;
  v_by record;
  v_requeued record;
begin
  select * into v_task from task t where t.id = p_id and ${isOf("t", "p_tenant")};
  if not found then return; end if;
  seq := v_task.seq;
  if v_task.resting_state not in ('failed', 'cancelled') then
    was := coalesce((select l.state from lease l where l.task_seq = v_task.seq), v_task.resting_state);
    return next;
    return;
  end if;
  if ${isOverdue("v_task", "v_now")} then
    was := 'overdue';
    return next;
    return;
  end if;
  select * into v_by from blocking_dependency(v_task);
  if found then
    was := 'blocked';
    by_id := v_by.id;
    by_state := v_by.state;
    return next;
    return;
  end if;
  v_requeued := requeue_task(v_now, v_task);
  if p_dependants then perform add_come_back(v_task, v_task.id); end if;
  perform settle_moves(v_now, ${RELEASED_MAX});
  ${PREEMPT}
  return query
    select null::text, null::text, null::text, v_task.seq, v_requeued.o_state, v_requeued.o_position, v_task.created_at,
           v_task.run_at, v_requeued.o_deadline, v_requeued.o_unserved;
end $$;
`;
