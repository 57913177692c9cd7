import { FAILURES_MAX } from "../../../model/delivery-shares.ts";
import type {
  DeliveryRecord,
  ListDeliveriesParams,
  PutBackClaim,
  ResentDelivery,
  SettledTry,
} from "../../storage.ts";
import type { OracleDelivery, OracleState } from "../state.ts";
import { isProven, receiverOf, refreshReceiver } from "./receivers.ts";

export function settleDeliveries(state: OracleState, { tries }: { tries: readonly SettledTry[] }): void {
  for (const { seq, tries: number, ...settled } of tries) {
    const delivery = state.deliveries.find((candidate) => candidate.seq === seq);
    if (delivery?.tries !== number || delivery.status !== "pending") continue;
    Object.assign(delivery, settled);
    const receiver = receiverOf(state, delivery);
    if (receiver !== undefined) {
      receiver.failures = settled.status === "delivered" ? 0 : Math.min(receiver.failures + 1, FAILURES_MAX);
    }
    refreshReceiver(state, delivery);
  }
}

export function putBackDeliveries(state: OracleState, { claims }: { claims: readonly PutBackClaim[] }): void {
  for (const { seq, tries, heldUntil, dueAt } of claims) {
    const delivery = state.deliveries.find((candidate) => candidate.seq === seq);
    if (delivery?.tries !== tries || delivery.dueAt !== heldUntil) continue;
    delivery.tries -= 1;
    delivery.dueAt = dueAt;
    if (delivery.tries === 0) delivery.lastTryAt = null;
    refreshReceiver(state, delivery);
  }
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
  const page = found.slice(0, limit).map((delivery) => recordOf(state, delivery));
  return { deliveries: page, nextCursor: found.length > limit ? (page.at(-1)?.seq ?? null) : null };
}

export function getDelivery(
  state: OracleState,
  { tenant, seq }: { tenant: string; seq: number },
): DeliveryRecord | null {
  const delivery = state.deliveries.find((candidate) => candidate.seq === seq && candidate.tenant === tenant);
  return delivery === undefined ? null : recordOf(state, delivery);
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
  refreshReceiver(state, delivery);
  return { found: true, was: null, delivery: recordOf(state, delivery) };
}

export function recordOf(state: OracleState, delivery: OracleDelivery): DeliveryRecord {
  const receiver = receiverOf(state, delivery);
  return { ...delivery, hostProven: receiver !== undefined && isProven(receiver) };
}
