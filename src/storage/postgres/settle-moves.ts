import { isNoted } from "./notes.ts";

/** Every operation that ends or moves tasks comes through here before it hands any out. */
export const SETTLE_FUNCTIONS = `
-- What follows from the moves of an operation: dependants hear of ends, p_limit of them at most, and batches let others in.
-- Answers whether anything followed.
create function settle_moves(p_now bigint, p_limit integer) returns boolean language plpgsql as $$
declare
  v_told integer := release_dependants(p_now, p_limit);
begin
  if not (${isNoted("batches")}) then return v_told > 0; end if;
  perform settle_batches(p_now);
  return true;
end $$;
`;
