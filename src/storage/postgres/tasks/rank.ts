import { FRONT_RANK, PRIORITY_CRITICAL } from "../../../model/priority.ts";

/** `rankOf` in SQL. `since`: when the task could first start. */
export function rankOf({
  priority,
  since,
  agingMs,
}: Record<"priority" | "since" | "agingMs", string>): string {
  return `case when ${priority} <= ${PRIORITY_CRITICAL} then ${priority}
               when ${agingMs} = 0 then ${FRONT_RANK} + ${priority}
               else ${since} + ${priority} * ${agingMs} end`;
}

/** `rankOf` for a row `t` of `task`, whose lane is looked up. */
export const RANK_IN_ITS_LANE = `
  (select ${rankOf({ priority: "t.priority", since: "greatest(t.created_at, t.run_at)", agingMs: "l.aging_ms" })}
     from line n join lane l on l.name = n.lane where n.id = t.line)`;
