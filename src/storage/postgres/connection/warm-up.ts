import { DEFAULT_PRIORITY } from "../../../model/priority.ts";
import { DEFAULT_TENANT } from "../../../model/tenant.ts";
import type { Abilities } from "../../storage.ts";
import type { Statement } from "./database.ts";

/** Our function raises this to undo what it did. Nothing outside of it sees this code. */
const UNDO = "P0410";

/**
 * A connection plans each statement of a function when it first runs it: the first insert, claim and finish of a connection take
 * 6–13 ms longer than the next. So a node lets each of its connections accept, start and end two tasks, of which one is held ahead,
 * in a transaction that is undone, before work arrives.
 */
export function warmUpStatement({
  node,
  lane,
  abilities,
}: {
  node: string;
  lane: string;
  abilities: Abilities | undefined;
}): Statement {
  const kind = abilities?.kinds[0] ?? "custom";
  const form = {
    tenant: DEFAULT_TENANT,
    agent: node,
    lane,
    kind,
    priority: DEFAULT_PRIORITY,
    max_retries_if_lost: 1,
    preemptible: false,
  };
  return {
    text: "select warm_up($1, $2, $3, $4)",
    values: [node, lane, `[${JSON.stringify(form)}]`, JSON.stringify({ work: { kind } })],
  };
}

export const WARM_UP_FUNCTIONS = `
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
    perform insert_tasks(v_now, p_forms, '{1,1}', array['warm-up', 'warm-up too'], p_spec || E'\\n' || p_spec, '{1,2}', '[]',
                         1000000, 1000000, 1000000);
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
    raise exception using errcode = '${UNDO}';
  exception when sqlstate '${UNDO}' then
    -- A sequence does not go back by itself. Under the write lock, no other transaction has taken a number since.
    perform setval('event_seq', v_number, v_called);
  end;
end $$;
`;
