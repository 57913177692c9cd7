import { FAILURES_MAX, IDLE_HOSTS_MAX } from "../../../model/delivery-shares.ts";
import type { OracleDeliveryTurn, OracleReceiver, OracleState } from "../state.ts";

/** Turns are counted in microseconds. */
export const TURNS_PER_MS = 1_000;

interface Receiver {
  readonly tenant: string;
  readonly host: string;
}

export function isProven({ failures }: OracleReceiver): boolean {
  return failures < FAILURES_MAX;
}

export function receiverOf(state: OracleState, { tenant, host }: Receiver): OracleReceiver | undefined {
  return state.receivers.find((each) => each.tenant === tenant && each.host === host);
}

export function deliveryTurnOf(
  state: OracleState,
  { tenant, proven }: { tenant: string; proven: boolean },
): OracleDeliveryTurn {
  const known = state.deliveryTurns.find((each) => each.tenant === tenant && each.proven === proven);
  if (known !== undefined) return known;
  const turn = { tenant, proven, served: 0, turn: null };
  state.deliveryTurns.push(turn);
  return turn;
}

/** Updates a host after one of its deliveries was added, changed or deleted, and its tenant with it. */
export function refreshReceiver(state: OracleState, { tenant, host }: Receiver): void {
  const due = state.deliveries
    .filter((delivery) => delivery.tenant === tenant && delivery.host === host)
    .flatMap(({ dueAt }) => dueAt ?? []);
  let receiver = receiverOf(state, { tenant, host });
  if (receiver === undefined && due.length > 0) {
    receiver = { tenant, host, failures: FAILURES_MAX, served: 0, turn: null };
    state.receivers.push(receiver);
  }
  if (receiver !== undefined) {
    const dueAt = Math.min(...due);
    receiver.turn = due.length === 0 ? null : turnAfter(state, dueAt * TURNS_PER_MS, receiver.served);
  }
  forgetIdleReceivers(state);
  refreshTurns(state, tenant);
}

/** Updates a tenant after one of its hosts has changed, or the tenant was disabled or enabled. */
export function refreshTurns(state: OracleState, tenant: string): void {
  const isDisabled = state.tenants.get(tenant)?.disabled === true;
  for (const proven of [true, false]) {
    const turns = state.receivers
      .filter((each) => each.tenant === tenant && isProven(each) === proven)
      .flatMap(({ turn }) => turn ?? []);
    const own = deliveryTurnOf(state, { tenant, proven });
    const isIdle = isDisabled || turns.length === 0;
    own.turn = isIdle ? null : turnAfter(state, Math.min(...turns), own.served);
  }
}

/** After the clock was set back, a receiver does not wait until the time when it was last served. */
function turnAfter({ clock }: OracleState, due: number, served: number): number {
  return Math.max(due, Math.min(served, clock.now() * TURNS_PER_MS + TURNS_PER_MS - 1));
}

/** Deletes hosts without pending deliveries, except proven ones that were among the last to be served. */
function forgetIdleReceivers(state: OracleState): void {
  const idle = state.receivers.filter(({ turn }) => turn === null);
  const kept = [...Map.groupBy(idle.filter(isProven), ({ tenant }) => tenant).values()].flatMap((ofTenant) =>
    ofTenant.sort((a, b) => b.served - a.served || (a.host < b.host ? 1 : -1)).slice(0, IDLE_HOSTS_MAX),
  );
  state.receivers = state.receivers.filter((each) => each.turn !== null || kept.includes(each));
}
