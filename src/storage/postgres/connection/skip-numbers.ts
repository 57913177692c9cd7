import { EVENT_NUMBERS_PER_MS } from "../../storage.ts";

/**
 * A database that was restored to an earlier state would assign event numbers again. Readers have seen these numbers, and
 * attempts hold them as fencing tokens. So the sequence moves past what this process has seen (`p_seen`), and past what can have
 * been written since the newest stored event.
 */
export const SKIP_FUNCTIONS = `
create function skip_event_numbers(p_now bigint, p_seen bigint) returns void language plpgsql as $$
#variable_conflict use_column
declare
  v_now bigint := take_write_lock(p_now);
  v_to bigint;
begin
  v_to := greatest(p_seen, (select last_seq + greatest(v_now - at, 0) * ${EVENT_NUMBERS_PER_MS}
                              from event order by last_seq desc limit 1));
  if v_to > (select last_value from event_seq) then perform setval('event_seq', v_to); end if;
end $$;
`;

/** Whether the sequence is below a number that this process has seen. */
export const IS_BEHIND = "select last_value < $1 as behind from event_seq";
