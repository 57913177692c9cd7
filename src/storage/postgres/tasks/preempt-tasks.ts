import { PRIORITY_CRITICAL } from "../../../model/priority.ts";
import { preemptionError } from "../../preemption-error.ts";
import { TOKENS_MAX } from "../connection/listen-notify.ts";
import { readSql } from "../connection/sql-file.ts";
import { tenantRoom } from "../tenants/share-out.ts";
import { leftFor } from "../tenants/tenant-shares.ts";
import { isDeferred } from "./deferred-work.ts";
import { RELEASED_MAX } from "./settle-moves.ts";

/** The last step of an operation. It does nothing unless the operation may have left a critical task without a slot. */
export function preemptAt(now: "v_now" | "p_now"): string {
  return `if ${isDeferred("new_critical_tasks")} or ${isDeferred("lanes_to_recheck")} then perform preempt(${now}); end if;`;
}

export const PREEMPT = preemptAt("v_now");

/** Takes the lease of the least urgent of these tasks; of equals, the one that started last. */
function takeLease(of: string): string {
  return `
    delete from lease where task_seq = (
      select l.task_seq from lease l
       where ${of} and l.priority is not null and l.node = any (v_able) order by l.priority desc, l.token desc limit 1)
    returning * into v_lease`;
}

/**
 * The free slots of a node in a lane; negative if it runs more tasks than it has slots. Tasks that are held ahead have no slot yet.
 * `s`: a row of `node_slot`, `h`: how many attempts the node holds there, and how many of them are running.
 */
const FREE_SLOTS = "s.slots - least(coalesce(h.held, 0), greatest(s.slots, coalesce(h.running, 0)))";

/** What pre-emption reads grows with tasks in flight, free slots and agents' limits, not with the backlog. */
export const PREEMPT_FUNCTIONS = readSql(new URL("./preempt-tasks.sql", import.meta.url), {
  PRIORITY_CRITICAL,
  SESSIONS_DEFERRED: isDeferred("sessions"),
  KEYS_DEFERRED: isDeferred("keys"),
  RELEASED_MAX,
  TOKENS_MAX,
  FREE_SLOTS,
  OWNER_ROOM: tenantRoom("o"),
  TAKE_LEASE_OF_AGENT:
    takeLease(`l.line in (select s.id from line n join line s on s.lane = n.lane and s.tenant = n.tenant and s.agent = n.agent
                                      where n.id = v_critical.line)`),
  TAKE_LEASE_OF_TENANT: takeLease("l.lane = p_lane and l.tenant = v_critical.tenant"),
  PREEMPTION_ERROR: preemptionError("' || v_critical.id || '"),
  TENANT_ROOM: tenantRoom("t"),
  LEFT_FOR_TENANT: leftFor("t"),
});
