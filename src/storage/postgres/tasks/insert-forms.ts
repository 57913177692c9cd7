import { PREEMPTIONS_MAX, PRIORITY_CRITICAL } from "../../../model/priority.ts";
import { rejectionError } from "../../admission.ts";
import type { FullQueue } from "../../storage.ts";
import { queueKind } from "../connection/abilities.ts";
import { readSql } from "../connection/sql-file.ts";
import { parkedBy } from "./batches.ts";
import { parentOf } from "./parent-of.ts";
import { rankOf } from "./rank.ts";

/** The tasks of a call, each with its form. */
const EACH = each("form, agent_position, id", "p_form_of, p_agent_positions, p_ids");
/** The same with the specs, which are large: only where they are stored. */
const EACH_WHOLE = each("form, agent_position, id, spec", "p_form_of, p_agent_positions, p_ids, p_specs");

function each(columns: string, arrays: string): string {
  return `(select u.*, v_forms[u.form] as f from unnest(${arrays}) with ordinality u(${columns}, n) offset 0)`;
}

/** The outcome of a task of `EACH`. */
const REFUSED = "v_full_queues[n] is not null";
const STATE = `case when ${REFUSED} then 'rejected' else (f).state end`;
const POSITION = `case when ${REFUSED} or (f).state <> 'queued' then 0 else (f).waiting + v_agent_positions[n] end`;
/** A rejected task does not wait for its dependencies. */
const DEADLINE = `case when ${REFUSED} then coalesce((f).deadline, greatest(p_now, (f).run_at) + (f).deadline_after_ms)
              else (f).deadline end`;
/** Whether nothing but its concurrency key, if it has one, keeps it from being ready. */
const ASKS = "v_full_queues[n] is null and ((f).ready or coalesce(v_admitted[n], false))";
/** Whether it is ready. */
const READY = `${ASKS} and v_held[n] is null`;
const ERROR = `'${rejectionError("' || v_full_queues[n] || '" as FullQueue)}'`;

/** Functions that insert tasks, for all operations that do. */
export const INSERT_FORM_FUNCTIONS = readSql(new URL("./insert-forms.sql", import.meta.url), {
  PRIORITY_CRITICAL,
  RANK: rankOf({ priority: "priority", since: "greatest(p_now, run_at)", agingMs: "aging_ms" }),
  LONE_RANK: rankOf({
    priority: "k.priority",
    since: "greatest(p_now, k.run_at)",
    agingMs: "v_limits.aging_ms",
  }),
  PREEMPTIONS_MAX,
  PARENT_STATE: parentOf("d.id", "k.tenant", "p.resting_state"),
  PARKED_BY: parkedBy("k"),
  QUEUE_KIND: queueKind("k", "l.served"),
  STATE,
  EACH,
  REFUSED,
  POSITION,
  DEADLINE,
  ERROR,
  EACH_WHOLE,
  READY,
  ASKS,
});
