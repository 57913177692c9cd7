import type { Settlement } from "../../../model/outcome.ts";
import type { TaskState } from "../../../model/task-state.ts";
import { jsonText } from "../../../model/text/json-text.ts";
import type { AttemptUsage, FinishAndClaimParams, FinishedAndClaimed } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Ledger } from "../counters/ledger.ts";
import { endTask, returnTask } from "./end-attempt.ts";
import { LEASE_COLUMNS, type Lease } from "./lease.ts";

/** Ends the attempts that this node still holds, inside a transaction. An attempt that lost its lease changes nothing. */
export function finishHeldTasks(
  db: SqliteDatabase,
  ledger: Ledger,
  params: Pick<FinishAndClaimParams, "node" | "finishes">,
  now: number,
): FinishedAndClaimed["finished"] {
  // Not `delete … returning`: for that SQLite builds a table in memory, which costs more than both statements.
  const findLease = db.prepare<Lease>(
    `select ${LEASE_COLUMNS} from lease where task_seq = ? and token = ? and node = ?`,
  );
  const removeLease = db.prepare("delete from lease where task_seq = ? and token = ? and node = ?");
  const finished: { token: number; state: TaskState }[] = [];
  for (const { seq, token, settlement, usage, summary } of params.finishes) {
    const lease = db.leases.find(seq, token) ?? findLease.get(seq, token, params.node);
    if (lease === undefined || removeLease.run(seq, token, params.node).changes === 0) continue;
    if (usage !== undefined) addUsage(db, ledger, lease, usage);
    applySettlement(db, ledger, lease, { settlement, summary, now });
    finished.push({ token, state: settlement.to });
  }
  return finished;
}

function addUsage(db: SqliteDatabase, ledger: Ledger, lease: Lease, usage: AttemptUsage): void {
  db.prepare(
    `update task set input_tokens = coalesce(input_tokens, 0) + ?, output_tokens = coalesce(output_tokens, 0) + ?,
                     context_window = coalesce(?, context_window)
      where seq = ?`,
  ).run(usage.inputTokens, usage.outputTokens, usage.contextWindow ?? null, lease.task_seq);
  if (lease.session === null) return;
  const session = ledger.sessions.get(lease.session);
  session.tokens = usage.contextTokens ?? session.tokens;
  session.context_window = usage.contextWindow ?? session.context_window;
}

function applySettlement(
  db: SqliteDatabase,
  ledger: Ledger,
  lease: Lease,
  { settlement, summary, now }: { settlement: Settlement; summary: string | undefined; now: number },
): void {
  switch (settlement.to) {
    case "done": {
      const result = jsonText(settlement.result) ?? "null";
      endTask(db, ledger, lease, { state: "done", outcome: "done", result, error: null, summary, now });
      break;
    }
    case "failed": {
      const { error } = settlement;
      endTask(db, ledger, lease, { state: "failed", outcome: "failed", result: null, error, now });
      break;
    }
    case "delayed":
      returnTask(db, ledger, lease, { ...settlement, outcome: "failed", counted: true, now });
      break;
    case "queued":
      returnTask(db, ledger, lease, {
        ...settlement,
        outcome: "interrupted",
        counted: false,
        runAt: now,
        now,
      });
      break;
  }
}

/** Writes the progress of running attempts as events, if they still hold their lease. */
export function writeProgress(
  db: SqliteDatabase,
  ledger: Ledger,
  params: Pick<FinishAndClaimParams, "node" | "progress">,
  now: number,
): void {
  const findLease = db.prepare<{ attempt: number; tenant: string }>(
    `select l.attempt, n.tenant from lease l join line n on n.id = l.line
      where l.task_seq = ? and l.token = ? and l.node = ?`,
  );
  for (const { seq, token, progress } of params.progress) {
    const lease = findLease.get(seq, token, params.node);
    if (lease === undefined) continue;
    const { attempt, tenant } = lease;
    ledger.events.add({ type: "task.progress", at: now, tenant, taskSeq: seq, data: { progress, attempt } });
  }
}
