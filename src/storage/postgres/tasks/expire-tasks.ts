import type { TaskLabels } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { PREEMPT } from "./preempt-tasks.ts";
import { RELEASED_MAX } from "./settle-moves.ts";

/** Fails waiting tasks whose deadline has passed. */
export async function expireTasks(
  db: PostgresDatabase,
  params: { limit: number },
): Promise<{ expired: TaskLabels[] }> {
  const expired = await db.write<TaskLabels>({
    name: "expire_tasks",
    text: "select * from expire_tasks($1, $2)",
    values: [params.limit],
  });
  if (expired.length > 0) {
    db.signal({ kind: "events" });
    // A batch may have room now.
    db.signal({ kind: "work" });
  }
  return { expired };
}

export const EXPIRE_FUNCTIONS = `
create function expire_tasks(p_now bigint, p_limit integer) returns table (tenant text, agent text, lane text)
language plpgsql as $$
declare
  v_now bigint := take_write_lock(p_now);
begin
  return query select * from expire_overdue(v_now, p_limit);
  perform settle_moves(v_now, ${RELEASED_MAX});
  ${PREEMPT}
end $$;
`;
