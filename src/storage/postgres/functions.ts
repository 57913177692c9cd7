import { createHash } from "node:crypto";
import type { ClientBase } from "pg";
import { ABILITY_FUNCTIONS } from "./abilities.ts";
import { AGENT_FUNCTIONS } from "./agents.ts";
import { AUDIT_FUNCTIONS } from "./audit.ts";
import { BATCH_FUNCTIONS } from "./batches.ts";
import { BULK_FUNCTIONS } from "./bulks.ts";
import { CANCEL_FUNCTIONS } from "./cancel-tasks.ts";
import { CANCEL_THESE_FUNCTIONS } from "./cancel-these.ts";
import { CLAIM_DELIVERY_FUNCTIONS } from "./claim-deliveries.ts";
import { CLAIM_FUNCTIONS } from "./claim-tasks.ts";
import { CONCURRENCY_KEY_FUNCTIONS } from "./concurrency-keys.ts";
import { COUNTER_FUNCTIONS } from "./counters.ts";
import { DELIVERY_FUNCTIONS } from "./deliveries.ts";
import { DUE_FUNCTIONS } from "./due-schedules.ts";
import { ENDING_FUNCTIONS } from "./end-attempts.ts";
import { RUN_FUNCTIONS } from "./end-run.ts";
import { EXPIRE_FUNCTIONS } from "./expire-tasks.ts";
import { FINISH_AND_CLAIM_FUNCTIONS } from "./finish-and-claim.ts";
import { FIRE_FUNCTIONS } from "./fire-schedules.ts";
import { INSERT_FUNCTIONS } from "./insert-tasks.ts";
import { LANE_FUNCTIONS } from "./lanes.ts";
import { LINE_FUNCTIONS } from "./make-lines.ts";
import { NODE_FUNCTIONS } from "./nodes.ts";
import { NOTE_FUNCTIONS } from "./notes.ts";
import { PAGE_EVENT_FUNCTIONS } from "./page-events.ts";
import { PREEMPT_FUNCTIONS } from "./preempt-tasks.ts";
import { PROMOTE_FUNCTIONS } from "./promote-due.ts";
import { PRUNE_FUNCTIONS } from "./prune.ts";
import { NOTIFICATION_FUNCTIONS } from "./read-notifications.ts";
import { RECEIVER_FUNCTIONS } from "./receivers.ts";
import { RECOUNT_FUNCTIONS } from "./recount.ts";
import { RELEASE_FUNCTIONS } from "./release-dependants.ts";
import { REQUEUE_FUNCTIONS } from "./requeue-task.ts";
import { RESCUE_FUNCTIONS } from "./rescue-tasks.ts";
import { RETRY_FUNCTIONS } from "./retry-task.ts";
import { REWIND_FUNCTIONS } from "./rewind-schedule.ts";
import { ROLL_UP_FUNCTIONS } from "./roll-up.ts";
import { PRUNE_RUN_FUNCTIONS, READ_RUN_FUNCTIONS } from "./runs.ts";
import { SCHEDULE_FUNCTIONS } from "./schedules.ts";
import { SEND_FUNCTIONS } from "./send-message.ts";
import { SESSION_FUNCTIONS } from "./sessions.ts";
import { SETTLE_FUNCTIONS } from "./settle-moves.ts";
import { SETTLE_SESSION_FUNCTIONS } from "./settle-sessions.ts";
import { SHARE_FUNCTIONS } from "./share-out.ts";
import { SKIP_FUNCTIONS } from "./skip-numbers.ts";
import { STORED_BYTES_FUNCTIONS } from "./stored-bytes.ts";
import { TAKE_IN_FUNCTIONS } from "./take-in.ts";
import { TURN_FUNCTIONS } from "./take-turns.ts";
import { TASK_LOG_FUNCTIONS } from "./task-logs.ts";
import { TENANT_SHARE_FUNCTIONS } from "./tenant-shares.ts";
import { TENANT_FUNCTIONS } from "./tenants.ts";
import { WEBHOOK_SECRET_FUNCTIONS } from "./webhook-secrets.ts";
import { WRITE_RUN_FUNCTIONS } from "./write-runs.ts";

const SOURCE = [
  NOTE_FUNCTIONS,
  AUDIT_FUNCTIONS,
  COUNTER_FUNCTIONS,
  BATCH_FUNCTIONS,
  RECEIVER_FUNCTIONS,
  DELIVERY_FUNCTIONS,
  CLAIM_DELIVERY_FUNCTIONS,
  ENDING_FUNCTIONS,
  REQUEUE_FUNCTIONS,
  RELEASE_FUNCTIONS,
  SETTLE_SESSION_FUNCTIONS,
  SETTLE_FUNCTIONS,
  EXPIRE_FUNCTIONS,
  TENANT_SHARE_FUNCTIONS,
  SHARE_FUNCTIONS,
  CLAIM_FUNCTIONS,
  PREEMPT_FUNCTIONS,
  FINISH_AND_CLAIM_FUNCTIONS,
  LINE_FUNCTIONS,
  TAKE_IN_FUNCTIONS,
  CONCURRENCY_KEY_FUNCTIONS,
  INSERT_FUNCTIONS,
  TURN_FUNCTIONS,
  CANCEL_THESE_FUNCTIONS,
  SEND_FUNCTIONS,
  SESSION_FUNCTIONS,
  PAGE_EVENT_FUNCTIONS,
  TASK_LOG_FUNCTIONS,
  NOTIFICATION_FUNCTIONS,
  SCHEDULE_FUNCTIONS,
  DUE_FUNCTIONS,
  WRITE_RUN_FUNCTIONS,
  FIRE_FUNCTIONS,
  RUN_FUNCTIONS,
  READ_RUN_FUNCTIONS,
  PRUNE_RUN_FUNCTIONS,
  CANCEL_FUNCTIONS,
  RETRY_FUNCTIONS,
  PROMOTE_FUNCTIONS,
  RESCUE_FUNCTIONS,
  PRUNE_FUNCTIONS,
  BULK_FUNCTIONS,
  ROLL_UP_FUNCTIONS,
  ABILITY_FUNCTIONS,
  NODE_FUNCTIONS,
  LANE_FUNCTIONS,
  AGENT_FUNCTIONS,
  TENANT_FUNCTIONS,
  WEBHOOK_SECRET_FUNCTIONS,
  STORED_BYTES_FUNCTIONS,
  RECOUNT_FUNCTIONS,
  SKIP_FUNCTIONS,
  REWIND_FUNCTIONS,
].join("\n");

/**
 * Operations run as functions inside the database: one round trip each, and the gate is never held while a process is
 * busy with something else. They live in a schema named for their text, so that nodes of two versions each call their
 * own.
 */
export const FUNCTION_SCHEMA = `rota_fn_${createHash("sha256").update(SOURCE).digest("hex").slice(0, 12)}`;

/**
 * Installs the functions of this version. Those of others stay: a node may still call them, and they are small. Only a
 * migration takes them away, where they would write what no longer holds.
 */
export async function installFunctions(client: ClientBase): Promise<void> {
  const { rowCount } = await client.query("select 1 from pg_namespace where nspname = $1", [FUNCTION_SCHEMA]);
  if (rowCount !== 0) return;
  await client.query("begin");
  try {
    await client.query(`create schema ${FUNCTION_SCHEMA}`);
    await client.query(`set local search_path = ${FUNCTION_SCHEMA}, rota`);
    // Functions name each other in any order.
    await client.query("set local check_function_bodies = off");
    await client.query(SOURCE);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}
