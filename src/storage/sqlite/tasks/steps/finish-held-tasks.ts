import type { Settlement } from "../../../../model/outcome.ts";
import type { TaskState } from "../../../../model/task-state.ts";
import { jsonText } from "../../../../model/text/json-text.ts";
import type { AttemptUsage, FinishAndClaimParams, FinishedAndClaimed } from "../../../storage.ts";
import type { Transaction } from "../../connection/transaction.ts";
import { LEASE_COLUMNS, type Lease } from "../lease.ts";
import { endTask, returnTask } from "./end-attempt.ts";

/** Ends the attempts that this node still holds. An attempt that lost its lease changes nothing. */
export function finishHeldTasks(
  tx: Transaction,
  params: Pick<FinishAndClaimParams, "node" | "finishes">,
): FinishedAndClaimed["finished"] {
  // Not `delete … returning`: for that SQLite builds a table in memory, which costs more than both statements.
  const findLease = tx.prepare<Lease>(
    `select ${LEASE_COLUMNS} from lease where task_seq = ? and token = ? and node = ?`,
  );
  const removeLease = tx.prepare("delete from lease where task_seq = ? and token = ? and node = ?");
  const finished: { token: number; state: TaskState }[] = [];
  for (const { seq, token, settlement, usage, summary } of params.finishes) {
    const lease = tx.db.leases.find(seq, token) ?? findLease.get(seq, token, params.node);
    if (lease === undefined || removeLease.run(seq, token, params.node).changes === 0) continue;
    if (usage !== undefined) addUsage(tx, lease, usage);
    applySettlement(tx, lease, { settlement, summary });
    finished.push({ token, state: settlement.to });
  }
  return finished;
}

function addUsage(tx: Transaction, lease: Lease, usage: AttemptUsage): void {
  tx.prepare(
    `update task set input_tokens = coalesce(input_tokens, 0) + ?, output_tokens = coalesce(output_tokens, 0) + ?,
                     context_window = coalesce(?, context_window)
      where seq = ?`,
  ).run(usage.inputTokens, usage.outputTokens, usage.contextWindow ?? null, lease.task_seq);
  if (lease.session === null) return;
  const session = tx.ledger.sessions.get(lease.session);
  session.tokens = usage.contextTokens ?? session.tokens;
  session.context_window = usage.contextWindow ?? session.context_window;
}

function applySettlement(
  tx: Transaction,
  lease: Lease,
  { settlement, summary }: { settlement: Settlement; summary: string | undefined },
): void {
  switch (settlement.to) {
    case "done": {
      const result = jsonText(settlement.result) ?? "null";
      endTask(tx, lease, { state: "done", outcome: "done", result, error: null, summary });
      break;
    }
    case "failed": {
      const { error } = settlement;
      endTask(tx, lease, { state: "failed", outcome: "failed", result: null, error });
      break;
    }
    case "delayed":
      returnTask(tx, lease, { ...settlement, outcome: "failed", counted: true });
      break;
    case "queued":
      returnTask(tx, lease, { ...settlement, outcome: "interrupted", counted: false, runAt: tx.now });
      break;
  }
}

/** Writes the progress of running attempts as events, if they still hold their lease. */
export function writeProgress(
  tx: Transaction,
  params: Pick<FinishAndClaimParams, "node" | "progress">,
): void {
  const findLease = tx.prepare<{ attempt: number; tenant: string }>(
    `select l.attempt, n.tenant from lease l join line n on n.id = l.line
      where l.task_seq = ? and l.token = ? and l.node = ?`,
  );
  for (const { seq, token, progress } of params.progress) {
    const lease = findLease.get(seq, token, params.node);
    if (lease === undefined) continue;
    const { attempt, tenant } = lease;
    tx.ledger.events.add({
      type: "task.progress",
      at: tx.now,
      tenant,
      taskSeq: seq,
      data: { progress, attempt },
    });
  }
}
