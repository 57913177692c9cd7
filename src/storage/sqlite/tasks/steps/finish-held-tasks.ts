import type { Settlement } from "../../../../model/outcome.ts";
import { isCritical } from "../../../../model/priority.ts";
import type { TaskState } from "../../../../model/task-state.ts";
import { jsonText } from "../../../../model/text/json-text.ts";
import type {
  AttemptUsage,
  BegunAttempt,
  FinishAndClaimParams,
  FinishedAndClaimed,
  FinishedAttempt,
} from "../../../storage.ts";
import type { Transaction } from "../../connection/transaction.ts";
import { LEASE_COLUMNS, type Lease } from "../lease.ts";
import { endTask, returnTask } from "./end-attempt.ts";

/** Makes assigned attempts that have begun `running`, if this node still holds them. */
export function beginHeldTasks(
  tx: Transaction,
  { node, begun = [] }: Pick<FinishAndClaimParams, "node" | "begun">,
): void {
  for (const attempt of begun) beginHeldTask(tx, node, attempt);
}

function beginHeldTask(tx: Transaction, node: string, { seq, token, startedAt }: BegunAttempt): void {
  const assigned = tx
    .prepare<Lease & { priority: number; preemptions_left: number }>(
      `select ${LEASE_COLUMNS.split(", ").map((column) => `l.${column}`)}, t.priority, t.preemptions_left
         from lease l join task t on t.seq = l.task_seq
        where l.task_seq = ? and l.token = ? and l.node = ? and l.state = 'assigned'`,
    )
    .get(seq, token, node);
  if (assigned === undefined) return;
  const { priority, preemptions_left, ...lease } = assigned;
  const at = Math.max(Math.min(startedAt ?? lease.started_at, tx.now), lease.started_at);
  const preemptible = preemptions_left > 0 && !isCritical(priority);
  tx.prepare("update lease set state = 'running', started_at = ?, preemptible = ? where task_seq = ?").run(
    at,
    preemptible ? 1 : 0,
    seq,
  );
  const begun = { ...lease, state: "running", started_at: at } as const;
  tx.db.leases.keep(begun);
  addStart(tx, begun);
  // A critical task that waits may pre-empt it from now on.
  if (preemptible) tx.ledger.lanesToRecheck.add(tx.ledger.agentQueue(lease.line).lane);
}

function addStart(tx: Transaction, { task_seq: taskSeq, line, attempt }: Lease): void {
  const { tenant } = tx.ledger.agentQueue(line);
  tx.ledger.events.add({ type: "task.started", at: tx.now, tenant, taskSeq, data: { attempt } });
}

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
  const ends: { readonly lease: Lease; readonly finish: FinishedAttempt }[] = [];
  for (const finish of params.finishes) {
    const { seq, token } = finish;
    const lease = tx.db.leases.find(seq, token) ?? findLease.get(seq, token, params.node);
    if (lease === undefined || removeLease.run(seq, token, params.node).changes === 0) continue;
    if (lease.state === "assigned" && finish.settlement.to !== "queued") addStart(tx, lease);
    ends.push({ lease, finish });
  }
  const finished: { token: number; state: TaskState }[] = [];
  for (const { lease, finish } of ends) {
    const { token, settlement, usage, summary } = finish;
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
