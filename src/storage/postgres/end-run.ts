import { addressOf, oneRow } from "./one-row.ts";

/** Whether the end of `c.runs` of its runs leaves a row `s` of `schedule`, which was due once, with nothing to do. */
const IS_OVER = `
  s.kind = 'once' and s.next_fire_at is null and s.open_runs = c.runs
  -- One that is paused before its only moment still has that to come.
  and (s.status <> 'paused' or coalesce(s.last_due_at >= (s.rule::json ->> 'atMs')::bigint, false))`;

/** A run of `s` goes: one that is due once is not over before that ends. */
export function takenUp(s: string, runs: string, now: string): string {
  return `open_runs = ${s}.open_runs + ${runs},
          status = case when ${runs} > 0 and ${s}.status in ('completed', 'failed') then 'active' else ${s}.status end,
          updated_at = case when ${runs} > 0 and ${s}.status in ('completed', 'failed') then ${now} else ${s}.updated_at end`;
}

/** The end of a task is the end of the run that it was made for; a task that is retried takes its run up again. */
export const RUN_FUNCTIONS = `
-- Ends the runs of those of these tasks that have ended, in this order. Some may be no runs, or their schedule is deleted.
create function end_runs(p_now bigint, p_seqs bigint[], p_summaries text[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_ids bigint[];
  v_gone bigint[];
begin
  with due as materialized (
    select t.*, coalesce(t.error, t.resting_state) as fault, u.summary, u.place, ${addressOf("run", "task_id = t.id")} as run
      from unnest(p_seqs, p_summaries) with ordinality u(seq, summary, place)
     cross join ${oneRow(
       "id, resting_state, error, input_tokens, output_tokens, executions",
       "task",
       "seq = u.seq and schedule is not null and completed_at is not null",
     )} t),
  ended as (
    update run r
       set status = case when d.resting_state = 'done' then 'succeeded' else 'failed' end,
           completed_at = p_now,
           result_summary = case when d.resting_state = 'done' then d.summary end,
           error = case when d.resting_state <> 'done' then d.fault end,
           reason = case when d.resting_state = 'cancelled' then d.fault end,
           input_tokens = coalesce(d.input_tokens, 0),
           output_tokens = coalesce(d.output_tokens, 0),
           attempt = d.executions
      from due d where r.ctid = d.run and r.status = 'running'
    returning r.id, r.schedule, r.status, r.error, d.place),
  counted as (
    update schedule s
       set open_runs = s.open_runs - c.runs, revision = s.revision + c.runs, last_status = c.status, last_error = c.error,
           status = case when not (${IS_OVER}) then s.status when c.status = 'succeeded' then 'completed' else c.status end,
           held = s.held and not (${IS_OVER}),
           updated_at = case when ${IS_OVER} then p_now else s.updated_at end
      from (select schedule, count(*)::integer as runs, (array_agg(status order by place desc))[1] as status,
                   (array_agg(error order by place desc))[1] as error, ${addressOf("schedule", "id = ended.schedule")} as row
              from ended group by schedule) c
     where s.ctid = c.row
    returning s.id, s.status = 'completed' and s.delete_after_run as gone)
  select (select array_agg(id order by place) from ended), (select array_agg(id) from counted where gone)
    into v_ids, v_gone;
  if v_ids is not null then perform tell_of_runs(p_now, v_ids); end if;
  if v_gone is not null then perform remove_schedules(v_gone); end if;
end $$;

create function reopen_run(p_now bigint, p_task_id text) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_run run;
begin
  update run set status = 'running', completed_at = null, reason = null, error = null where task_id = p_task_id
  returning * into v_run;
  if not found then return; end if;
  update schedule s set ${takenUp("s", "1", "p_now")}, revision = s.revision + 1 where s.id = v_run.schedule;
  perform tell_of_runs(p_now, array[v_run.id]);
end $$;
`;
