import type {
  ClaimedDelivery,
  DeliveryRecord,
  ListDeliveriesParams,
  PutBackClaim,
  ResentDelivery,
  SettledTry,
} from "../storage.ts";
import { type OracleState, toRecord } from "./state.ts";

export function claimDeliveries(
  state: OracleState,
  { limit, holdMs }: { limit: number; holdMs: number },
): ClaimedDelivery[] {
  const now = state.clock.now();
  const due = state.deliveries
    .filter(({ dueAt }) => dueAt !== null && dueAt <= now)
    .sort((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0) || a.seq - b.seq)
    .slice(0, limit);
  return due.flatMap((delivery) => {
    delivery.tries += 1;
    delivery.dueAt = now + holdMs;
    delivery.lastTryAt = now;
    const task = state.tasks.find(({ seq }) => seq === delivery.taskSeq);
    return task === undefined ? [] : [{ delivery: { ...delivery }, task: toRecord(task) }];
  });
}

export function settleDeliveries(state: OracleState, { tries }: { tries: readonly SettledTry[] }): void {
  for (const { seq, tries: number, ...settled } of tries) {
    const delivery = state.deliveries.find((candidate) => candidate.seq === seq);
    if (delivery?.tries === number && delivery.status === "pending") Object.assign(delivery, settled);
  }
}

export function putBackDeliveries(state: OracleState, { claims }: { claims: readonly PutBackClaim[] }): void {
  for (const { seq, tries, heldUntil, dueAt } of claims) {
    const delivery = state.deliveries.find((candidate) => candidate.seq === seq);
    if (delivery?.tries !== tries || delivery.dueAt !== heldUntil) continue;
    delivery.tries -= 1;
    delivery.dueAt = dueAt;
    if (delivery.tries === 0) delivery.lastTryAt = null;
  }
}

export function nextDeliveryAt(state: OracleState): number | null {
  const due = state.deliveries.flatMap(({ dueAt }) => dueAt ?? []);
  return due.length === 0 ? null : Math.min(...due);
}

export function listDeliveries(
  state: OracleState,
  { tenant, taskId, status, limit, cursor }: ListDeliveriesParams,
): { deliveries: DeliveryRecord[]; nextCursor: number | null } {
  const found = state.deliveries
    .filter((delivery) => delivery.tenant === tenant)
    .filter((delivery) => taskId === undefined || delivery.taskId === taskId)
    .filter((delivery) => status === undefined || delivery.status === status)
    .filter((delivery) => cursor === undefined || delivery.seq < cursor)
    .sort((a, b) => b.seq - a.seq);
  const page = found.slice(0, limit).map((delivery) => ({ ...delivery }));
  return { deliveries: page, nextCursor: found.length > limit ? (page.at(-1)?.seq ?? null) : null };
}

export function getDelivery(
  state: OracleState,
  { tenant, seq }: { tenant: string; seq: number },
): DeliveryRecord | null {
  const delivery = state.deliveries.find((candidate) => candidate.seq === seq && candidate.tenant === tenant);
  return delivery === undefined ? null : { ...delivery };
}

export function resendDelivery(
  state: OracleState,
  { tenant, seq }: { tenant: string; seq: number },
): ResentDelivery {
  const delivery = state.deliveries.find((candidate) => candidate.seq === seq && candidate.tenant === tenant);
  if (delivery === undefined) return { found: false };
  if (delivery.status === "pending") return { found: true, was: "pending" };
  const untried = { tries: 0, lastTryAt: null, responseStatus: null, error: null };
  Object.assign(delivery, { ...untried, status: "pending", dueAt: state.clock.now() });
  return { found: true, was: null, delivery: { ...delivery } };
}
