-- Ends the runs of those of these tasks that have ended, in this order. Some may belong to no run, or to a deleted
-- schedule.
create function end_runs(p_now bigint, p_seqs bigint[], p_summaries text[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_ids bigint[];
  v_gone bigint[];
  v_failing bigint[];
begin
  -- Schedules that may be paused by this get their notifications one after the other.
  if cardinality(p_seqs) > 1 and exists (
       select 1 from unnest(p_seqs) u(seq)
        cross join lateral (select schedule from task where seq = u.seq and schedule is not null offset 0) t
        cross join lateral (select pause_after_failures from schedule where id = t.schedule offset 0) s
        where s.pause_after_failures > 0) then
    for v_index in 1 .. cardinality(p_seqs) loop
      perform end_runs(p_now, array[p_seqs[v_index]], array[p_summaries[v_index]]);
    end loop;
    return;
  end if;
  with due as materialized (
    select t.*, coalesce(t.error, t.resting_state) as fault, u.summary, u.ordinal, (select a.ctid from run a where a.task_id = t.id) as run
      from unnest(p_seqs, p_summaries) with ordinality u(seq, summary, ordinal)
     cross join lateral (select id, resting_state, error, input_tokens, output_tokens, executions from task where seq = u.seq and schedule is not null and completed_at is not null offset 0) t),
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
    returning r.id, r.schedule, r.status, r.error, r.reason, d.ordinal),
  summed as materialized (
    select e.schedule, count(*)::integer as runs, (array_agg(e.status order by e.ordinal desc))[1] as status,
           (array_agg(e.error order by e.ordinal desc))[1] as error,
           -- Failures since the last success. A cancelled run counts as neither.
           count(*) filter (where e.status = 'failed' and e.reason is null and e.ordinal > coalesce(e.success, 0))::integer as failures,
           bool_or(e.success is not null) as succeeded, (select a.ctid from schedule a where a.id = e.schedule) as row
      from (select e.*, max(e.ordinal) filter (where e.status = 'succeeded') over (partition by e.schedule) as success
              from ended e) e
     group by e.schedule),
  counted as (
    update schedule s
       set open_runs = s.open_runs - c.runs, revision = s.revision + c.runs, last_status = c.status, last_error = c.error,
           consecutive_failures = c.failures + case when c.succeeded then 0 else s.consecutive_failures end,
           status = case when not (:IS_OVER) then s.status when c.status = 'succeeded' then 'completed' else c.status end,
           held = s.held and not (:IS_OVER),
           paused_reason = case when not (:IS_OVER) then s.paused_reason end,
           updated_at = case when :IS_OVER then p_now else s.updated_at end
      from summed c
     where s.ctid = c.row
    returning s.id,
              s.kind = 'once' and s.status = 'completed' and c.status = 'succeeded' and s.open_runs = 0 and s.next_fire_at is null
                and s.delete_after_run as gone,
              s.kind = 'recurring' and s.status = 'active' and s.pause_after_failures > 0
                and s.consecutive_failures >= s.pause_after_failures as failing)
  select (select array_agg(id order by ordinal) from ended), (select array_agg(id) from counted where gone),
         (select array_agg(id) from counted where failing)
    into v_ids, v_gone, v_failing;
  if v_ids is not null then perform append_run_notifications(p_now, v_ids); end if;
  if v_failing is not null then perform pause_failing(p_now, v_failing); end if;
  if v_gone is not null then perform remove_schedules(v_gone); end if;
end $$;

-- Pauses schedules whose runs have failed too often in a row.
create function pause_failing(p_now bigint, p_ids bigint[]) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_reasons text[];
begin
  update schedule s
     set status = 'paused', next_fire_at = null, paused_reason = ':FAILED_IN_A_ROW' || s.consecutive_failures, updated_at = p_now
   where s.id = any (p_ids);
  v_reasons := array(
    select s.paused_reason from unnest(p_ids) with ordinality u(id, ordinal)
     cross join lateral (select paused_reason from schedule where id = u.id offset 0) s order by u.ordinal);
  perform append_schedule_notifications(p_now, 'schedule.paused', p_ids, v_reasons);
end $$;

create function reopen_run(p_now bigint, p_task_id text) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_run run;
begin
  update run set status = 'running', completed_at = null, reason = null, error = null where task_id = p_task_id
  returning * into v_run;
  if not found then return; end if;
  update schedule s set :RUN_STARTS, revision = s.revision + 1 where s.id = v_run.schedule;
  perform append_run_notifications(p_now, array[v_run.id]);
end $$;
