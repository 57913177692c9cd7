import { createHash } from "node:crypto";
import type { ClientBase } from "pg";
import { COUNTER_FUNCTIONS } from "../counters/counters.ts";
import { AGENT_QUEUE_FUNCTIONS } from "../counters/create-agent-queues.ts";
import { RECOUNT_FUNCTIONS } from "../counters/recount.ts";
import { STORED_BYTES_FUNCTIONS } from "../counters/stored-bytes.ts";
import { AUDIT_FUNCTIONS } from "../log/audit.ts";
import { CLAIM_DELIVERY_FUNCTIONS } from "../log/claim-deliveries.ts";
import { DELIVERY_FUNCTIONS } from "../log/deliveries.ts";
import { NOTIFICATION_FUNCTIONS } from "../log/notifications.ts";
import { PAGE_EVENT_FUNCTIONS } from "../log/page-events.ts";
import { RECEIVER_FUNCTIONS } from "../log/receivers.ts";
import { ROLL_UP_FUNCTIONS } from "../log/roll-up.ts";
import { DUE_FUNCTIONS } from "../schedules/due-schedules.ts";
import { RUN_FUNCTIONS } from "../schedules/end-run.ts";
import { FIRE_FUNCTIONS } from "../schedules/fire-schedules.ts";
import { REWIND_FUNCTIONS } from "../schedules/rewind-schedule.ts";
import { PRUNE_RUN_FUNCTIONS, READ_RUN_FUNCTIONS } from "../schedules/runs.ts";
import { SCHEDULE_FUNCTIONS } from "../schedules/schedules.ts";
import { WRITE_RUN_FUNCTIONS } from "../schedules/write-runs.ts";
import { POST_FUNCTIONS } from "../sessions/post-answer.ts";
import { SEND_FUNCTIONS } from "../sessions/send-message.ts";
import { SESSION_FUNCTIONS } from "../sessions/sessions.ts";
import { SETTLE_SESSION_FUNCTIONS } from "../sessions/settle-sessions.ts";
import { TAKE_MESSAGES_FUNCTIONS } from "../sessions/take-messages.ts";
import { TURN_FUNCTIONS } from "../sessions/take-turns.ts";
import { BATCH_FUNCTIONS } from "../tasks/batches.ts";
import { BULK_FUNCTIONS } from "../tasks/bulks.ts";
import { CANCEL_OPEN_FUNCTIONS } from "../tasks/cancel-open-tasks.ts";
import { CANCEL_FUNCTIONS } from "../tasks/cancel-tasks.ts";
import { CLAIM_FUNCTIONS } from "../tasks/claim-tasks.ts";
import { CONCURRENCY_KEY_FUNCTIONS } from "../tasks/concurrency-keys.ts";
import { DEFERRED_WORK_FUNCTIONS } from "../tasks/deferred-work.ts";
import { ENDING_FUNCTIONS } from "../tasks/end-attempt.ts";
import { EXCHANGE_FUNCTIONS } from "../tasks/exchange.ts";
import { EXPIRE_FUNCTIONS } from "../tasks/expire-tasks.ts";
import { FINISH_AND_CLAIM_FUNCTIONS } from "../tasks/finish-and-claim.ts";
import { INSERT_FORM_FUNCTIONS } from "../tasks/insert-forms.ts";
import { INSERT_FUNCTIONS } from "../tasks/insert-tasks.ts";
import { PREEMPT_FUNCTIONS } from "../tasks/preempt-tasks.ts";
import { PROMOTE_FUNCTIONS } from "../tasks/promote-due.ts";
import { PRUNE_FUNCTIONS } from "../tasks/prune.ts";
import { RELEASE_FUNCTIONS } from "../tasks/release.ts";
import { REQUEUE_FUNCTIONS } from "../tasks/requeue-task.ts";
import { RESCUE_FUNCTIONS } from "../tasks/rescue-tasks.ts";
import { RETRY_FUNCTIONS } from "../tasks/retry-task.ts";
import { SETTLE_FUNCTIONS } from "../tasks/settle-moves.ts";
import { BOUND_FUNCTIONS } from "../tasks/submit-bounds.ts";
import { TASK_LOG_FUNCTIONS } from "../tasks/task-logs.ts";
import { AGENT_FUNCTIONS } from "../tenants/agents.ts";
import { LANE_FUNCTIONS } from "../tenants/lanes.ts";
import { SHARE_FUNCTIONS } from "../tenants/share-out.ts";
import { TENANT_SHARE_FUNCTIONS } from "../tenants/tenant-shares.ts";
import { TENANT_FUNCTIONS } from "../tenants/tenants.ts";
import { WEBHOOK_SECRET_FUNCTIONS } from "../tenants/webhook-secrets.ts";
import { WORKER_EXCHANGE_FUNCTIONS } from "../workers/exchange.ts";
import { PREEMPT_FOR_WORKERS_FUNCTIONS } from "../workers/preempt-for-workers.ts";
import { WORKER_FUNCTIONS } from "../workers/workers.ts";
import { ABILITY_FUNCTIONS } from "./abilities.ts";
import { NODE_FUNCTIONS } from "./nodes.ts";
import { SKIP_FUNCTIONS } from "./skip-numbers.ts";
import { WARM_UP_FUNCTIONS } from "./warm-up.ts";

const SOURCE = [
  DEFERRED_WORK_FUNCTIONS,
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
  EXCHANGE_FUNCTIONS,
  AGENT_QUEUE_FUNCTIONS,
  INSERT_FORM_FUNCTIONS,
  CONCURRENCY_KEY_FUNCTIONS,
  BOUND_FUNCTIONS,
  INSERT_FUNCTIONS,
  TURN_FUNCTIONS,
  CANCEL_OPEN_FUNCTIONS,
  SEND_FUNCTIONS,
  TAKE_MESSAGES_FUNCTIONS,
  POST_FUNCTIONS,
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
  WORKER_FUNCTIONS,
  WORKER_EXCHANGE_FUNCTIONS,
  PREEMPT_FOR_WORKERS_FUNCTIONS,
  LANE_FUNCTIONS,
  AGENT_FUNCTIONS,
  TENANT_FUNCTIONS,
  WEBHOOK_SECRET_FUNCTIONS,
  STORED_BYTES_FUNCTIONS,
  RECOUNT_FUNCTIONS,
  SKIP_FUNCTIONS,
  WARM_UP_FUNCTIONS,
  REWIND_FUNCTIONS,
].join("\n");

/**
 * Operations run as functions inside the database: one round trip each, and no process holds the write lock while it is busy with
 * something else. Their schema is named for their text, so that nodes of two versions each call their own.
 */
export const FUNCTION_SCHEMA = `rota_fn_${createHash("sha256").update(SOURCE).digest("hex").slice(0, 12)}`;

/**
 * Installs the functions of this version. Those of other versions stay: a node may still call them, and they are small. Only a
 * migration drops them, where they would write what is no longer valid.
 */
export async function installFunctions(client: ClientBase): Promise<void> {
  const { rowCount } = await client.query("select 1 from pg_namespace where nspname = $1", [FUNCTION_SCHEMA]);
  if (rowCount !== 0) return;
  await client.query("begin");
  try {
    await client.query(`create schema ${FUNCTION_SCHEMA}`);
    await client.query(`set local search_path = ${FUNCTION_SCHEMA}, rota`);
    // Functions refer to each other in any order.
    await client.query("set local check_function_bodies = off");
    await client.query(SOURCE);
    await client.query("commit");
  } catch (error) {
    await client.query("rollback");
    throw error;
  }
}
