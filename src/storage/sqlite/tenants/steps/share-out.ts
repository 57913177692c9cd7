import type { Transaction } from "../../connection/transaction.ts";
import type { LaneRow } from "../../counters/ledger.ts";
import type { TenantQueue } from "../../counters/tenant-ledger.ts";
import type { SlotsLeft } from "../tenant-shares.ts";

interface Sharer {
  readonly tenantQueue: TenantQueue;
  inflight: number;
  lastServed: number;
  preemptionCredit: number;
  left: number;
}

/**
 * Which tenants get the next `slots` starts of a lane, one entry for each start. Tenants with pre-emption credit go
 * first: their critical task pre-empted one of their own and has not started yet. Then the tenant with the fewest tasks in
 * flight; of several, the one served longest ago. `left`: how many of these slots each tenant may take; null: no limit. Changes
 * nothing.
 */
export function shareOut(
  tx: Transaction,
  lane: LaneRow,
  { slots, left }: { slots: number; left: SlotsLeft | null },
): TenantQueue[] {
  const { ledger } = tx;
  ledger.countTenants();
  const sharers = ledger.tenants
    .candidates(lane.name, slots, left?.full ?? 0)
    .map((tenantQueue) => {
      const room = ledger.tenants.room(tenantQueue);
      return toSharer(tenantQueue, left === null ? room : Math.min(room, left.of(tenantQueue.tenant)));
    })
    .filter(({ left }) => left > 0);
  const [only] = sharers;
  if (only === undefined) return [];
  if (sharers.length === 1) return new Array<TenantQueue>(Math.min(slots, only.left)).fill(only.tenantQueue);
  const turns: TenantQueue[] = [];
  while (turns.length < slots) {
    let next: Sharer | undefined;
    for (const other of sharers) {
      if (other.left > 0 && (next === undefined || compare(other, next) < 0)) next = other;
    }
    if (next === undefined) break;
    turns.push(next.tenantQueue);
    next.inflight += 1;
    next.lastServed = tx.db.lastEventSeq + turns.length;
    next.preemptionCredit = Math.max(next.preemptionCredit - 1, 0);
    next.left -= 1;
  }
  return turns;
}

function toSharer(tenantQueue: TenantQueue, left: number): Sharer {
  return {
    tenantQueue,
    inflight: tenantQueue.inflight,
    lastServed: tenantQueue.last_served,
    preemptionCredit: tenantQueue.preemptionCredit,
    left,
  };
}

function compare(a: Sharer, b: Sharer): number {
  return (
    Number(a.preemptionCredit === 0) - Number(b.preemptionCredit === 0) ||
    a.inflight - b.inflight ||
    a.lastServed - b.lastServed ||
    a.tenantQueue.id - b.tenantQueue.id
  );
}
