import type { AdmissionLimits, InsertedTask, NewTask } from "../../../storage.ts";
import type { Transaction } from "../../connection/transaction.ts";

/** The limits, with how many tasks wait so far: of all tenants, and of the tenants of this call. */
export type Admission = AdmissionLimits & {
  waiting: number;
  /** The part of `waiting` that tenants have beyond their half; undefined until it is needed. */
  beyondHalf?: number;
  readonly queued: Map<string, number>;
};

/** For messages, which their session limits, and runs, which their schedule limits: admission neither counts nor rejects them. */
export const NO_ADMISSION: Admission = {
  maxQueueSize: 0,
  maxQueueSizeTotal: 1_000,
  maxPerAgent: 0,
  waiting: 0,
  queued: new Map(),
};

/** Whether admission rejects a task; null: it does not. `agentWaiting`: how many tasks of its agent wait. */
export function refuse(
  tx: Transaction,
  { lane, tenant, agent, maxQueued }: NewTask,
  { admission, agentWaiting }: { admission: Admission; agentWaiting: number },
): InsertedTask["rejection"] {
  const { ledger } = tx;
  const { max_queued: maxOfTenant, disabled } = ledger.tenants.of({ lane, tenant });
  // Reports only the tenant's own tasks: it must not learn how many tasks of other tenants wait.
  const queued = queuedOf(tx, admission, tenant);
  if (disabled === 0 && isFullForAll(tx, admission)) return { full: "server", queued };
  if (queued >= (maxOfTenant ?? admission.maxQueueSize)) return { full: "global", queued };
  if (queued >= halfOf(admission) && hasSecondTenant(tx)) return { full: "server", queued };
  const queuedOfAgent = agentWaiting - ledger.exemptOfAgent(tenant, agent);
  if (queuedOfAgent >= (maxQueued ?? admission.maxPerAgent)) return { full: "agent", queued: queuedOfAgent };
  return null;
}

function queuedOf({ ledger }: Transaction, { queued }: Admission, tenant: string): number {
  let own = queued.get(tenant);
  if (own === undefined) {
    own = ledger.tenants.queued(tenant, ledger.allLanes());
    queued.set(tenant, own);
  }
  return own;
}

export function countAdmitted(tx: Transaction, admission: Admission, { lane, tenant }: NewTask): void {
  admission.queued.set(tenant, queuedOf(tx, admission, tenant) + 1);
  if (tx.ledger.tenants.of({ lane, tenant }).disabled === 0) admission.waiting += 1;
}

/** The share of the total queue that one tenant may fill while a second enabled tenant exists. */
function halfOf({ maxQueueSizeTotal }: Admission): number {
  return Math.floor(maxQueueSizeTotal / 2);
}

/**
 * If a tenant has more than its half, which retries can cause, only the half counts. Few calls need this sum, so it is computed
 * only when it decides. No admitted task brings its tenant beyond its half, so the sum stays valid for the rest of the call.
 */
function isFullForAll(tx: Transaction, admission: Admission): boolean {
  if (admission.waiting < admission.maxQueueSizeTotal) return false;
  admission.beyondHalf ??= hasSecondTenant(tx) ? beyondHalf(tx, halfOf(admission)) : 0;
  return admission.waiting - admission.beyondHalf >= admission.maxQueueSizeTotal;
}

/** The sum of waiting tasks that enabled tenants have beyond their half, before this transaction. */
function beyondHalf(tx: Transaction, half: number): number {
  const row = tx
    .prepare<{ beyond: number }>(
      `select coalesce(sum(queued - @half), 0) as beyond
         from (select sum(waiting - exempt) as queued from tenant_line where disabled = 0 group by tenant)
        where queued > @half`,
    )
    .get({ half });
  return row?.beyond ?? 0;
}

export function hasSecondTenant(tx: Transaction): boolean {
  return tx.prepare("select 1 from tenant where disabled = 0 limit 1 offset 1").get() !== undefined;
}
