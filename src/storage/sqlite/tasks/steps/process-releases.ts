import { type ComeBack, isNamedBy, namedDependency, parseComeBack } from "../../../dependency-error.ts";
import { RELEASES_LOOKED_AT, shareReleases } from "../../../shared-releases.ts";
import type { Transaction } from "../../connection/transaction.ts";
import { endWaitingTask, WAITING_COLUMNS, type WaitingTask } from "./end-waiting-task.ts";
import { enterQueue } from "./enter-queue.ts";
import {
  addComeBack,
  countUnmet,
  ENDED_COLUMNS,
  type EndedTask,
  findBlocking,
  isOverdue,
  requeueTask,
} from "./requeue-task.ts";

/** To how many dependants one transaction passes ends and retries on; `release` does the rest. */
export const RELEASED_MAX = 100;

/**
 * Passes ends and retries on to up to `limit` dependants. Tenants get equal shares, so that one with very many dependants does not
 * delay those of others.
 */
export function processReleases(tx: Transaction, limit: number): number {
  if (!tx.ledger.hasReleases) return 0;
  let notified = 0;
  while (notified < limit) {
    const { share, ofTenants } = shareReleases(oldestReleases(tx), limit - notified);
    if (ofTenants.length === 0) {
      tx.ledger.hasReleases = false;
      break;
    }
    for (const releases of ofTenants) {
      notified += processInOrder(tx, releases, Math.min(share, limit - notified));
    }
  }
  return notified;
}

/** Processes release rows of one tenant until `limit` dependants are reached. */
function processInOrder(tx: Transaction, releases: readonly Release[], limit: number): number {
  let notified = 0;
  for (const release of releases) {
    if (notified >= limit) break;
    notified += processRelease(tx, release, limit - notified);
  }
  return notified;
}

function oldestReleases(tx: Transaction): (Release & { readonly tenant: string })[] {
  return tx
    .prepare<Release & { tenant: string }>(
      `select r.seq, r.parent_seq, r.error, r.after_seq,
              coalesce((select t.tenant from task t where t.seq = r.parent_seq), '') as tenant
         from release r order by r.seq limit ${RELEASES_LOOKED_AT}`,
    )
    .all();
}

interface Release {
  readonly seq: number;
  readonly parent_seq: number;
  readonly error: string | null;
  readonly after_seq: number;
}

/**
 * Processes one release row. Returns to how many dependants it was passed on, but at least 1: a row without dependants costs
 * time, too.
 */
function processRelease(tx: Transaction, release: Release, limit: number): number {
  const comeBack = parseComeBack(release.error);
  const seqs =
    comeBack === null ? passEndOn(tx, release, limit) : bringBack(tx, release, { ...comeBack, limit });
  const last = seqs.at(-1);
  if (last !== undefined && seqs.length === limit) {
    tx.prepare("update release set after_seq = ? where seq = ?").run(last, release.seq);
  } else {
    tx.prepare("delete from release where seq = ?").run(release.seq);
  }
  return Math.max(seqs.length, 1);
}

/** The next dependants of a release row. */
function dependantsOf<Row extends { readonly seq: number }>(
  tx: Transaction,
  { parent_seq: parentSeq, after_seq: afterSeq }: Release,
  { columns, limit }: { columns: string; limit: number },
): Row[] {
  return tx
    .prepare<Row>(
      `select ${columns} from dependency d join task t on t.seq = d.child_seq
        where d.parent_seq = ? and d.child_seq > ? order by d.child_seq limit +?`,
    )
    .all(parentSeq, afterSeq, limit);
}

function passEndOn(tx: Transaction, release: Release, limit: number): number[] {
  const columns = `${WAITING_COLUMNS}, t.dependencies, t.run_at, t.deadline, t.deadline_after_ms, t.place`;
  const dependants = dependantsOf<Dependant>(tx, release, { columns, limit });
  for (const dependant of dependants) {
    // It may have ended already, or another dependency may have cancelled it.
    if (dependant.resting_state !== "waiting_dependency") continue;
    const { error } = release;
    if (error === null) meetDependency(tx, dependant);
    else endWaitingTask(tx, dependant, { state: "cancelled", error, dueTo: "dependency" });
  }
  return dependants.map(({ seq }) => seq);
}

/** Queues dependants again that were cancelled because of the row's task, unless they could only end the same way. */
function bringBack(
  tx: Transaction,
  release: Release,
  { limit, ...comeBack }: ComeBack & { limit: number },
): number[] {
  const columns = `${ENDED_COLUMNS}, (select p.id from task p where p.seq = d.parent_seq) as parent`;
  const dependants = dependantsOf<EndedTask & { parent: string }>(tx, release, { columns, limit });
  for (const dependant of dependants) {
    const { seq, error, parent } = dependant;
    if (dependant.resting_state !== "cancelled" || !isNamedBy(error, parent, comeBack)) continue;
    if (isOverdue(dependant, tx.now) || findBlocking(tx, dependant) !== undefined) continue;
    requeueTask(tx, dependant);
    if (dependant.has_dependants === 1) {
      addComeBack(tx, seq, { retried: comeBack.retried, named: namedDependency(error) });
    }
  }
  return dependants.map(({ seq }) => seq);
}

interface Dependant extends WaitingTask {
  readonly place: number | null;
  readonly dependencies: number;
  readonly run_at: number | null;
  readonly deadline: number | null;
  readonly deadline_after_ms: number | null;
}

/**
 * Records that a dependency is done. After the last one the task is queued, or delayed until its `runAt`. The open dependencies
 * are counted instead of subtracting one: a task that was inserted or retried after that end has never counted it as open.
 */
function meetDependency(tx: Transaction, dependant: Dependant): void {
  const { ledger, now } = tx;
  const { seq, run_at: runAt, deadline_after_ms: afterMs } = dependant;
  const unmet = dependant.dependencies === 1 ? 0 : countUnmet(tx, dependant);
  if (unmet > 0) {
    tx.prepare("update task set unmet = ? where seq = ?").run(unmet, seq);
    return;
  }
  const delayed = runAt !== null && runAt > now;
  const state = delayed ? "delayed" : "queued";
  const deadline = afterMs === null ? dependant.deadline : Math.max(now, runAt ?? now) + afterMs;
  tx.prepare("update task set unmet = 0, resting_state = ?, deadline = ? where seq = ?").run(
    state,
    deadline,
    seq,
  );
  const agentQueue = ledger.agentQueue(dependant.line);
  if (!delayed) enterQueue(tx, dependant);
  ledger.count(agentQueue.tenant, "waiting_dependency", -1);
  ledger.count(agentQueue.tenant, state, 1);
  if (delayed || deadline !== null) tx.signal("due");
  if (!delayed) tx.signal("work");
}
