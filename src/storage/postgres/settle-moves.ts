import { isNoted } from "./notes.ts";

/** How many dependants one transaction tells; the rest waits for `release`. */
export const RELEASED_MAX = 100;

/** Every operation that ends or moves tasks comes through here before it hands any out. */
export const SETTLE_FUNCTIONS = `
-- What follows from the moves of an operation: dependants hear of ends, p_limit of them at most, and sessions and batches
-- let others in. Answers whether anything followed.
create function settle_moves(p_now bigint, p_limit integer) returns boolean language plpgsql as $$
declare
  v_told integer := 0;
  v_settled boolean := false;
begin
  loop
    v_told := v_told + release_dependants(p_now, p_limit - v_told);
    exit when not (${isNoted("sessions")});
    perform settle_sessions(p_now);
    v_settled := true;
    -- Others may depend on what a session ends as stale.
    exit when v_told >= p_limit or not exists (select 1 from release);
  end loop;
  if ${isNoted("batches")} then
    perform settle_batches(p_now);
    v_settled := true;
  end if;
  return v_settled or v_told > 0;
end $$;
`;
