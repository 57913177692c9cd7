import { isNoted } from "./notes.ts";

/** Every operation that ends or moves tasks comes through here before it hands any out. */
export const SETTLE_FUNCTIONS = `
-- What follows from the moves of an operation: dependants hear of ends, p_limit of them at most, and sessions and batches
-- let others in. Answers whether anything followed.
create function settle_moves(p_now bigint, p_limit integer) returns boolean language plpgsql as $$
declare
  v_settled boolean := release_dependants(p_now, p_limit) > 0;
begin
  if ${isNoted("sessions")} then
    perform settle_sessions(p_now);
    v_settled := true;
  end if;
  if ${isNoted("batches")} then
    perform settle_batches(p_now);
    v_settled := true;
  end if;
  return v_settled;
end $$;
`;
