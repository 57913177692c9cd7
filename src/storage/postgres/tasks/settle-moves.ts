import { isDeferred } from "./deferred-work.ts";

/** How many dependants one transaction notifies; `release` notifies the rest. */
export const RELEASED_MAX = 100;

/** Every operation that ends or moves tasks calls these functions before it claims any. */
export const SETTLE_FUNCTIONS = `
-- Does what follows from the moves of an operation: up to p_limit dependants follow ends, and sessions, batches and keys
-- admit other tasks. Returns whether it did anything.
create function settle_moves(p_now bigint, p_limit integer) returns boolean language plpgsql as $$
declare
  v_released integer := 0;
  v_settled boolean := false;
begin
  loop
    v_released := v_released + release_dependants(p_now, p_limit - v_released);
    exit when not (${isDeferred("sessions")});
    perform settle_sessions(p_now);
    v_settled := true;
    -- Other tasks may depend on a task that a session ends as stale.
    exit when v_released >= p_limit or not exists (select 1 from release);
  end loop;
  if ${isDeferred("batches")} or ${isDeferred("keys")} then v_settled := settle_batches_and_keys(p_now) or v_settled; end if;
  return v_settled or v_released > 0;
end $$;

-- Assigns free slots of batches and free keys, and appends the end of batches whose last task has ended. Returns whether
-- there was anything to assign but keys that no task waits for.
create function settle_batches_and_keys(p_now bigint) returns boolean language plpgsql as $$
declare
  v_settled boolean := false;
  v_ids text[];
  v_all text[] := '{}';
begin
  if ${isDeferred("keys")} then v_settled := settle_keys(); end if;
  -- A task that does not get its key gives up its slot in its batch. The task that gets the slot may want a key, too.
  while ${isDeferred("batches")} loop
    v_ids := take_deferred_work('batches');
    v_all := v_all || v_ids;
    perform admit_from_batches(v_ids);
    if ${isDeferred("keys")} then perform settle_keys(); end if;
    v_settled := true;
  end loop;
  if cardinality(v_all) > 0 then perform complete_batches(p_now, v_all); end if;
  return v_settled;
end $$;
`;
