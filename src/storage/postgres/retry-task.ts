import type { TaskState } from "../../model/task-state.ts";
import type { RetriedTask } from "../storage.ts";
import { parkedBy } from "./batches.ts";
import type { PostgresDatabase } from "./database.ts";
import { PREEMPT } from "./preempt-tasks.ts";
import { RANK_IN_ITS_LANE } from "./rank.ts";
import { isOf } from "./read-tasks.ts";
import { RELEASED_MAX } from "./settle-moves.ts";

/** Puts a failed or cancelled task back into the queue. */
export async function retryTask(
  db: PostgresDatabase,
  params: { tenant: string; id: string },
): Promise<RetriedTask> {
  const [row] = await db.write<{
    was: TaskState | "overdue" | null;
    seq: string;
    state: "queued" | "delayed" | "waiting_dependency";
    position: number;
    created_at: string;
    run_at: string | null;
    deadline: string | null;
  }>({
    name: "retry_task",
    text: "select * from retry_task($1, $2, $3)",
    values: [params.tenant, params.id],
  });
  if (row === undefined) return { found: false };
  if (row.was === "overdue") return { found: true, was: row.was };
  if (row.was !== null) return { found: true, was: row.was };
  db.signal({ kind: "events" });
  db.signal({ kind: "work" });
  if (row.deadline !== null || row.state === "delayed") db.signal({ kind: "due" });
  return {
    found: true,
    was: null,
    task: {
      seq: Number(row.seq),
      id: params.id,
      state: row.state,
      position: row.position,
      createdAt: Number(row.created_at),
      runAt: row.run_at === null ? null : Number(row.run_at),
      deadline: row.deadline === null ? null : Number(row.deadline),
      rejection: null,
      repeats: null,
    },
  };
}

export const RETRY_FUNCTIONS = `
create function retry_task(p_now bigint, p_tenant text, p_id text)
returns table (was text, seq bigint, state text, "position" integer, created_at bigint, run_at bigint, deadline bigint)
language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := enter(p_now);
  v_task task;
  v_exempt integer;
  v_place bigint;
  v_held text;
  v_position integer := 0;
  v_unmet integer;
  v_state text;
  v_starts_at bigint := v_now;
  v_deadline bigint;
  v_parked text;
  v_ready boolean;
  v_rank bigint;
begin
  select * into v_task from task t where t.id = p_id and ${isOf("t", "p_tenant")};
  if not found then return; end if;
  if v_task.resting_state not in ('failed', 'cancelled') then
    select state into v_held from lease where task_seq = v_task.seq;
    return query select coalesce(v_held, v_task.resting_state), v_task.seq, null::text, 0, 0::bigint, 0::bigint, 0::bigint;
    return;
  end if;
  if v_task.deadline_after_ms is null and v_task.deadline <= v_now then
    return query select 'overdue', v_task.seq, null::text, 0, 0::bigint, 0::bigint, 0::bigint;
    return;
  end if;
  -- The attempt that had ended the task becomes an earlier one.
  if v_task.last_started_at is not null then
    insert into attempt (task_seq, number, started_at, ended_at, outcome, error, node)
    values (v_task.seq, v_task.executions, v_task.last_started_at, v_task.completed_at, v_task.last_outcome,
            v_task.error, v_task.last_node);
  end if;
  v_unmet := v_task.dependencies - (
    select count(*) from dependency d join task p on p.seq = d.parent_seq
     where d.child_seq = v_task.seq and p.resting_state = 'done');
  v_exempt := (v_task.origin is not null)::integer;
  v_deadline := v_task.deadline;
  if v_unmet > 0 then
    v_state := 'waiting_dependency';
    if v_task.deadline_after_ms is not null then v_deadline := null; end if;
  else
    -- What was asked for holds; the wait of an earlier retry does not.
    if v_task.executions = 0 then v_starts_at := greatest(v_now, v_task.run_at); end if;
    v_deadline := coalesce(v_starts_at + v_task.deadline_after_ms, v_deadline);
    v_state := case when v_starts_at > v_now then 'delayed' else 'queued' end;
  end if;
  if v_state = 'queued' then
    if v_task.session is null then v_parked := ${parkedBy("v_task")}; end if;
    select sum(s.waiting)::integer + 1 into v_position
      from line n join line s on s.tenant = n.tenant and s.agent = n.agent where n.id = v_task.line;
  end if;
  v_place := accept_in_session(v_task);
  update task t
     set resting_state = v_state, parked = v_parked, place = v_place, unmet = v_unmet, position = v_position, retry_count = 0,
         completed_at = null, deadline = v_deadline, rank = ${RANK_IN_ITS_LANE},
         last_started_at = null, last_outcome = null, last_node = null, error = null
   where t.seq = v_task.seq
  returning t.rank into v_rank;
  v_ready := v_state = 'queued' and v_parked is null and v_task.session is null;
  if v_ready then
    insert into ready (line, rank, task_seq) values (v_task.line, v_rank, v_task.seq);
    perform apply_deltas(array[row(v_task.line, 1, v_exempt, 0, 1, 0, null, v_rank, v_task.seq)::line_delta]);
  else
    perform apply_deltas(array[
      row(v_task.line, 1, v_exempt, (v_parked is not null)::integer, 0, 0, null, null, null)::line_delta]);
  end if;
  if v_task.batch is not null then
    perform move_batches(array[row(v_task.batch, (v_ready or v_parked is not distinct from 'asking')::integer, 1)::batch_delta]);
  end if;
  if v_parked = 'asking' then perform add_note('keys', array[v_task.seq::text]); end if;
  perform count_moves(array[p_tenant], array[v_task.resting_state], array[v_state]);
  if v_state = 'queued' and v_task.session is not null then perform take_turns(v_now, array[v_task.seq]); end if;
  perform tell(take_event_numbers(1), v_now, array['task.retrying'], array[p_tenant], array[v_task.seq],
               array[json_strip_nulls(json_build_object('attempt', v_task.executions, 'error', v_task.error,
                                                        'retryAt', v_starts_at, 'state', v_state))::text]);
  if v_task.schedule is not null then perform reopen_run(v_now, v_task.id); end if;
  perform settle_moves(v_now, ${RELEASED_MAX});
  ${PREEMPT}
  return query
    select null::text, v_task.seq, v_state, v_position, v_task.created_at, v_task.run_at, v_deadline;
end $$;
`;
