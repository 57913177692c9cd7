-- The results for tasks that an earlier call has inserted.
create function already_inserted(p_ids text[]) returns setof inserted_task language sql stable as $$
  select seq, id, case when resting_state = 'rejected' then 'rejected'
                       when position > 0 then 'queued'
                       when resting_state = 'waiting_dependency' then resting_state else 'delayed' end,
         position, created_at, run_at, deadline,
         full_queue, 0::bigint, null::text,
         resting_state <> 'rejected' and exists (select 1 from line n where n.id = task.line and n.standing = 2)
    from task where id = any (p_ids)
$$;

create function insert_tasks(
  p_now bigint, p_forms json, p_form_of integer[], p_ids text[], p_specs text, p_agent_positions integer[], p_batches json,
  p_max_queue bigint, p_max_total bigint, p_max_agent bigint, out first_seq bigint, out created_at bigint, out forms json, out "each" json)
language plpgsql as $$
declare
  v_now bigint := take_write_lock(p_now);
  v_taken inserted_forms;
begin
  created_at := v_now;
  if cardinality(p_ids) = 1 then
    select t.first_seq, t.forms into first_seq, forms
      from insert_ready_task(v_now, p_forms, p_ids[1], p_specs, p_max_queue, p_max_total, p_max_agent, null, null, null, null, null) t;
    if first_seq is not null then return; end if;
  end if;
  if json_array_length(p_batches) > 0 then perform create_batches(v_now, p_batches); end if;
  v_taken := insert_forms(v_now, p_forms, p_form_of, p_agent_positions, p_ids, string_to_array(p_specs, E'\n'),
                           p_max_queue, p_max_total, p_max_agent);
  :FOLLOW_UP
  first_seq := v_taken.first_seq;
  if v_taken."each" is null then
    select json_agg(json_build_object('state', f.state, 'waiting', f.waiting, 'deadline', f.deadline,
                                      'unserved', f.unserved)) into forms
      from unnest(v_taken.forms) f;
  else
    select json_agg(i) into "each" from with_current_states(v_taken."each") i;
  end if;
end $$;

-- A dependency that had failed may have cancelled some of them in the same transaction.
create function with_current_states(p_inserted inserted_task[]) returns setof inserted_task language plpgsql as $$
begin
  if not exists (select 1 from unnest(p_inserted) i where i.state = 'waiting_dependency') then
    return query select * from unnest(p_inserted);
    return;
  end if;
  return query
    select i.seq, i.id, case when i.state = 'waiting_dependency' then t.resting_state else i.state end,
           i."position", i.created_at, i.run_at, i.deadline, i."full", i.queued, i.repeats, i.unserved
      from unnest(p_inserted) with ordinality as i(seq, id, state, "position", created_at, run_at, deadline, "full",
                                                   queued, repeats, unserved, ordinal)
     cross join lateral (select resting_state from task where seq = i.seq offset 0) t order by i.ordinal;
end $$;

-- The same if some tasks have idempotency keys: inserts only tasks whose key has no task yet. It inserts runs of tasks
-- without a repeated key, so that of several tasks with one key the first is stored when the next is checked.
create function insert_keyed_tasks(
  p_now bigint, p_forms json, p_form_of integer[], p_ids text[], p_specs text, p_keys text[], p_hashes text[],
  p_batches json, p_max_queue bigint, p_max_total bigint, p_max_agent bigint, p_bounds json, out "each" json)
language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_specs text[] := string_to_array(p_specs, E'\n');
  v_tenants text[] := array(select tenant from json_to_recordset(p_forms) as j(tenant text));
  -- For each task, the index of the previous task with the same key; null: none.
  v_before integer[] := array(
    select lag(n) over (partition by v_tenants[form], key order by n)
      from unnest(p_form_of, p_keys) with ordinality u(form, key, n) order by n);
  v_from integer := 1;
  v_to integer;
  v_stretch inserted_task[];
  v_new integer[];
  v_taken inserted_task[];
  v_all inserted_task[] := '{}';
begin
  if json_array_length(p_batches) > 0 then perform create_batches(v_now, p_batches); end if;
  while v_from <= cardinality(p_ids) loop
    v_to := v_from;
    while v_to < cardinality(p_ids) and (p_keys[v_to + 1] is null or (v_before[v_to + 1] >= v_from) is not true) loop
      v_to := v_to + 1;
    end loop;
    -- One by one, by key: a plan for all keys at once is made while there are few rows, and reads all of them when
    -- there are many.
    select array_agg(made order by n), array_agg(n order by n) filter (where made is null) into v_stretch, v_new
      from (select form, key, hash, ordinal + v_from - 1 as n
              from unnest(p_form_of[v_from:v_to], p_keys[v_from:v_to], p_hashes[v_from:v_to])
                     with ordinality u(form, key, hash, ordinal)) u
      left join lateral (
        select row(t.seq, t.id, coalesce(l.state, t.resting_state), t.position, t.created_at, t.run_at, t.deadline, null, null,
                   case when k.hash = u.hash then 'same' else 'other' end, false)::inserted_task as made
          from idempotency_key k
         cross join lateral (
           select seq, id, resting_state, position, created_at, run_at, deadline from task where seq = k.task_seq offset 0) t
          left join lateral (select state from lease where task_seq = t.seq offset 0) l on true
         where k.tenant = v_tenants[u.form] and k.key = u.key and k.created_at > v_now - :IDEMPOTENCY_MS
        offset 0) k on true;
    if json_array_length(p_batches) > 0 then
      perform refuse_conflict(p_forms, p_form_of[v_from:v_to], p_ids[v_from:v_to], p_batches, v_stretch);
    end if;
    if v_new is not null then
      v_taken := insert_selected(v_now, p_forms, p_form_of, p_ids, v_specs, v_new, p_max_queue, p_max_total, p_max_agent);
      for v_index in 1 .. cardinality(v_new) loop
        v_stretch[v_new[v_index] - v_from + 1] := v_taken[v_index];
      end loop;
      perform store_idempotency_keys(v_now, array_agg(v_tenants[p_form_of[n]]), array_agg(p_keys[n]), array_agg(p_hashes[n]), array_agg(seq))
         from (select n, (v_taken[ordinal]).seq, (v_taken[ordinal])."full" from unnest(v_new) with ordinality u(n, ordinal)) u
        where p_keys[n] is not null and "full" is null;
    end if;
    v_all := v_all || v_stretch;
    v_from := v_to + 1;
  end loop;
  if p_bounds is not null then
    perform count_bounded(v_now, p_bounds, array(select i.seq from unnest(v_all) i where i.repeats is null and i."full" is null));
  end if;
  :FOLLOW_UP
  "each" := (select json_agg(i) from with_current_states(v_all) i);
end $$;

-- Both as a single round trip that does not wait for the disk under the write lock: the flush follows the commit.
create procedure insert_tasks_durably(
  p_now bigint, p_forms json, p_form_of integer[], p_ids text[], p_specs text, p_agent_positions integer[], p_batches json,
  p_max_queue bigint, p_max_total bigint, p_max_agent bigint, inout first_seq bigint, inout created_at bigint, inout forms json,
  inout "each" json)
language plpgsql as $$
#variable_conflict use_column
begin
  perform set_config('synchronous_commit', 'off', true);
  select i.first_seq, i.created_at, i.forms, i."each" into first_seq, created_at, forms, "each"
    from insert_tasks(p_now, p_forms, p_form_of, p_ids, p_specs, p_agent_positions, p_batches, p_max_queue, p_max_total, p_max_agent) i;
  commit;
  perform flush_with_commit();
end $$;

create procedure insert_keyed_tasks_durably(
  p_now bigint, p_forms json, p_form_of integer[], p_ids text[], p_specs text, p_keys text[], p_hashes text[],
  p_batches json, p_max_queue bigint, p_max_total bigint, p_max_agent bigint, p_bounds json, inout "each" json)
language plpgsql as $$
#variable_conflict use_column
begin
  perform set_config('synchronous_commit', 'off', true);
  select i."each" into "each"
    from insert_keyed_tasks(p_now, p_forms, p_form_of, p_ids, p_specs, p_keys, p_hashes, p_batches, p_max_queue, p_max_total, p_max_agent,
                            p_bounds) i;
  commit;
  perform flush_with_commit();
end $$;

-- A batch is inserted whole or not at all: if one of its tasks has a key that was used for another request, the whole call
-- fails.
create function refuse_conflict(
  p_forms json, p_form_of integer[], p_ids text[], p_batches json, p_made inserted_task[])
returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_conflict record;
begin
  select i.id as made, p_ids[i.n] as refused, p_forms -> p_form_of[i.n] - 1 ->> 'batch' as batch into v_conflict
    from unnest(p_made) with ordinality
           i(seq, id, state, "position", created_at, run_at, deadline, "full", queued, repeats, unserved, n)
   where i.repeats = 'other'
     and p_forms -> p_form_of[i.n] - 1 ->> 'batch' in (select id from json_to_recordset(p_batches) as j(id text))
   order by i.n limit 1;
  if not found then return; end if;
  raise exception 'a key in batch % was used for another request', v_conflict.batch
    using errcode = ':BATCH_CONFLICT',
          detail = json_build_object('taskId', v_conflict.made, 'refused', v_conflict.refused)::text;
end $$;

-- Stores the idempotency keys of new tasks.
create function store_idempotency_keys(p_now bigint, p_tenants text[], p_keys text[], p_hashes text[], p_seqs bigint[])
returns void language plpgsql as $$
#variable_conflict use_column
begin
  insert into idempotency_key (tenant, key, hash, task_seq, created_at)
  select tenant, key, hash, seq, p_now from unnest(p_tenants, p_keys, p_hashes, p_seqs) u(tenant, key, hash, seq)
  on conflict (tenant, key) do update
    set hash = excluded.hash, task_seq = excluded.task_seq, created_at = excluded.created_at;
end $$;
