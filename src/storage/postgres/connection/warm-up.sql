-- Prepares a connection; see warm-up.ts. It raises P0410 to undo what it did: no caller sees this code.
create function warm_up(p_node text, p_lane text, p_forms json, p_spec text) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(null);
  v_number bigint;
  v_called boolean;
  v_request exchange_request := row(
    p_node, 0, 0, current_schema(), false, '{}', '{}', '{}', null, null, null, null, null, null, null, array[p_lane], '{1}',
    array[null]::integer[], array[null]::text[], null, '{1}', null, null, null, null, null, null);
  v_requests exchange_request[];
begin
  select last_value, is_called into v_number, v_called from event_seq;
  begin
    -- Undone first: it takes a slot of its agent.
    perform insert_and_claim(v_now, p_forms, '{1}', array['warm-up first'], p_spec, '{1}', '[]', 1000000, 1000000, 1000000, p_node,
                             array[p_lane], '{1}', array[null]::integer[], array[null]::text[], true);
    raise exception using errcode = 'P0410';
  exception when sqlstate 'P0410' then null;
  end;
  begin
    perform insert_tasks(v_now, p_forms, '{1,1}', array['warm-up', 'warm-up too'], p_spec || E'\n' || p_spec, '{1,2}', '[]',
                         1000000, 1000000, 1000000);
    perform insert_tasks(v_now, p_forms, '{1}', array['warm-up alone'], p_spec, '{1}', '[]', 1000000, 1000000, 1000000);
    perform serve_exchanges(v_now, v_request, 2, true);
    -- One that runs and one that is held ahead end in a step for two requests.
    select array_agg(row(
             p_node, 0, 0, current_schema(), false, array[l.task_seq], array[l.token], array['null'], null, null,
             case when l.state = 'assigned' then array[l.task_seq] end, case when l.state = 'assigned' then array[l.token] end,
             case when l.state = 'assigned' then array[v_now] end, case when l.state = 'assigned' then array[1] end, array[1],
             array[p_lane], '{1}', array[null]::integer[], array[null]::text[], null, '{1}', null, null, null, null, null,
             null)::exchange_request)
      into v_requests from (select * from lease where node = p_node order by token desc limit 2) l;
    perform serve_together(v_now, v_requests || v_request);
    raise exception using errcode = 'P0410';
  exception when sqlstate 'P0410' then
    -- A sequence does not go back by itself. Under the write lock, no other transaction has taken a number since.
    perform setval('event_seq', v_number, v_called);
  end;
end $$;
