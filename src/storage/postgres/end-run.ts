/** Whether the end of `c.runs` of its runs leaves a row `s` of `schedule`, which was due once, with nothing to do. */
const IS_OVER =
  "s.kind = 'once' and s.next_fire_at is null and s.open_runs = c.runs and s.status <> 'paused'";

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
  v_seqs bigint[];
  v_summaries text[];
  v_gone bigint[];
begin
  select array_agg(e.run order by e.place), array_agg(e.seq order by e.place), array_agg(e.summary order by e.place)
    into v_ids, v_seqs, v_summaries
    from (select t.seq, u.summary, u.place,
                 (select case when r.status = 'running' then r.id end from run r where r.task_id = t.id) as run
            from unnest(p_seqs, p_summaries) with ordinality u(seq, summary, place) join task t on t.seq = u.seq
           where t.schedule is not null and t.completed_at is not null) e
   where e.run is not null;
  if v_ids is null then return; end if;
  with ended as (
    update run r
       set status = case when t.resting_state = 'done' then 'succeeded' else 'failed' end,
           completed_at = p_now,
           result_summary = case when t.resting_state = 'done' then e.summary end,
           error = case when t.resting_state <> 'done' then coalesce(t.error, t.resting_state) end,
           reason = case when t.resting_state = 'cancelled' then coalesce(t.error, t.resting_state) end,
           input_tokens = coalesce(t.input_tokens, 0),
           output_tokens = coalesce(t.output_tokens, 0),
           attempt = t.executions
      from unnest(v_ids, v_seqs, v_summaries) with ordinality e(id, seq, summary, place) join task t on t.seq = e.seq
     where r.id = e.id
    returning r.schedule, r.status, r.error, e.place),
  counted as (
    update schedule s
       set open_runs = s.open_runs - c.runs, revision = s.revision + c.runs, last_status = c.status, last_error = c.error,
           status = case when not (${IS_OVER}) then s.status when c.status = 'succeeded' then 'completed' else c.status end,
           updated_at = case when ${IS_OVER} then p_now else s.updated_at end
      from (select schedule, count(*)::integer as runs, (array_agg(status order by place desc))[1] as status,
                   (array_agg(error order by place desc))[1] as error
              from ended group by schedule) c
     where s.id = c.schedule
    returning s.id, s.status = 'completed' and s.delete_after_run as gone)
  select array_agg(id) filter (where gone) into v_gone from counted;
  perform tell_of_runs(p_now, v_ids);
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
