import { isCritical } from "../../../../model/priority.ts";
import { jsonText } from "../../../../model/text/json-text.ts";
import type {
  AttemptUsage,
  BegunAttempt,
  FinishAndClaimParams,
  FinishedAndClaimed,
  FinishedAttempt,
} from "../../../storage.ts";
import { wavesOf } from "../../../waves.ts";
import { inTens, RowBatch, rowStatement } from "../../connection/row-batch.ts";
import type { Transaction } from "../../connection/transaction.ts";
import { LEASE_COLUMNS, type Lease } from "../lease.ts";
import { StaleLeaseError } from "../stale-lease.ts";
import { addStart, END_USUAL_TASKS, endTask, returnTask } from "./end-attempt.ts";

/** Begins assigned attempts that this node still holds, and ends attempts, wave by wave. */
export function beginAndFinish(
  tx: Transaction,
  params: Pick<FinishAndClaimParams, "node" | "begun" | "finishes" | "progress">,
): FinishedAndClaimed["finished"] {
  const { node, progress } = params;
  return wavesOf(params).flatMap(({ begun, finishes }) => {
    const starts = begun.flatMap((attempt) => beginHeldTask(tx, node, attempt) ?? []);
    const ends = takeLeases(tx, node, finishes).map(({ lease, finish }) => {
      if (lease.state === "running" || finish.settlement.to === "queued") return { lease, finish };
      starts.push(lease);
      return { lease: addStart(tx, lease), finish };
    });
    for (const { task_seq: seq, token, line, attempt } of starts) {
      const last = progress.findLast((report) => report.seq === seq && report.token === token);
      const { tenant } = tx.ledger.agentQueue(line);
      if (last !== undefined) addProgress(tx, { tenant, attempt }, last);
    }
    return finishHeldTasks(tx, ends);
  });
}

function beginHeldTask(
  tx: Transaction,
  node: string,
  { seq, token, startedAt }: BegunAttempt,
): Lease | undefined {
  const assigned = tx
    .prepare<Lease & { priority: number; preemptions_left: number }>(
      `select ${LEASE_COLUMNS.split(", ").map((column) => `l.${column}`)}, t.priority, t.preemptions_left
         from lease l join task t on t.seq = l.task_seq
        where l.task_seq = ? and l.token = ? and l.node = ? and l.state = 'assigned'`,
    )
    .get(seq, token, node);
  if (assigned === undefined) return undefined;
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
  return begun;
}

/** An end, with the lease that its attempt held until now. */
interface End {
  readonly lease: Lease;
  readonly finish: FinishedAttempt;
}

/**
 * Takes the leases of attempts that end and that this node still holds. An attempt that lost its lease changes nothing. Throws
 * `StaleLeaseError`: see `transactEnds`.
 */
function takeLeases(tx: Transaction, node: string, finishes: readonly FinishedAttempt[]): End[] {
  // Not `delete … returning`: for that SQLite builds a table in memory, which costs more than both statements.
  const findLease = tx.prepare<Lease>(
    `select ${LEASE_COLUMNS} from lease where task_seq = ? and token = ? and node = ?`,
  );
  const ends = finishes.flatMap((finish) => {
    const { seq, token } = finish;
    const lease = tx.db.leases.find(seq, token) ?? findLease.get(seq, token, node);
    return lease?.node === node ? [{ lease, finish }] : [];
  });
  for (const { statement, rows } of inTens(REMOVE_LEASES, ends)) {
    const seqs = rows.map(({ lease }) => lease.task_seq);
    const tokens = rows.map(({ lease }) => lease.token);
    const { changes } = tx.prepare(statement).run(...seqs, ...tokens, node);
    if (changes !== rows.length) throw new StaleLeaseError();
  }
  return ends;
}

/** No two attempts have the same token, so that a row with one of the tokens is the lease of that attempt. */
const REMOVE_LEASES = rowStatement(
  "?",
  (values) => `delete from lease where task_seq in (${values}) and token in (${values}) and node = ?`,
);

function finishHeldTasks(tx: Transaction, ends: readonly End[]): FinishedAndClaimed["finished"] {
  const rows = new RowBatch(tx, END_USUAL_TASKS);
  for (const { lease, finish } of ends) {
    if (finish.usage !== undefined) addUsage(tx, lease, finish.usage);
    applySettlement(tx, lease, finish, rows);
  }
  rows.write();
  return ends.map(({ finish: { token, settlement } }) => ({ token, state: settlement.to }));
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
  { settlement, summary }: FinishedAttempt,
  rows: RowBatch,
): void {
  switch (settlement.to) {
    case "done": {
      const result = settlement.text ?? jsonText(settlement.result) ?? "null";
      endTask(tx, lease, { state: "done", outcome: "done", result, error: null, summary }, rows);
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
      where l.task_seq = ? and l.token = ? and l.node = ? and l.state = 'running'`,
  );
  for (const report of params.progress) {
    const lease = findLease.get(report.seq, report.token, params.node);
    if (lease !== undefined) addProgress(tx, lease, report);
  }
}

function addProgress(
  tx: Transaction,
  { tenant, attempt }: { tenant: string; attempt: number },
  { seq, progress }: FinishAndClaimParams["progress"][number],
): void {
  tx.ledger.events.add({
    type: "task.progress",
    at: tx.now,
    tenant,
    taskSeq: seq,
    data: { progress, attempt },
  });
}
