import { DeliveryCount } from "../../../model/delivery-shares.ts";
import type { ClaimDeliveriesParams, ClaimedDeliveries, ClaimedDelivery } from "../../storage.ts";
import { type OracleReceiver, type OracleState, toRecord } from "../state.ts";
import { recordOf } from "./deliveries.ts";
import { deliveryTurnOf, isProven, refreshReceiver, TURNS_PER_MS } from "./receivers.ts";

export function claimDeliveries(
  state: OracleState,
  { shares, held, holdMs }: ClaimDeliveriesParams,
): ClaimedDeliveries {
  const now = state.clock.now();
  const last = now * TURNS_PER_MS + TURNS_PER_MS - 1;
  const count = new DeliveryCount(shares, held);
  const claimed: ClaimedDelivery[] = [];
  for (;;) {
    const receiver = chances(state, count).find(({ turn, host }) => turn <= last && host.turn <= last)?.host
      .receiver;
    if (receiver === undefined) break;
    const { tenant, host } = receiver;
    const proven = isProven(receiver);
    receiver.served = now * TURNS_PER_MS + Math.min(claimed.length + 1, TURNS_PER_MS - 1);
    deliveryTurnOf(state, { tenant, proven }).served = receiver.served;
    claimed.push(...handOut(state, receiver, { now, holdMs }));
    count.add({ tenant, host, proven });
  }
  return { claimed, nextAt: nextAt(state, count, last) };
}

interface Chance {
  /** The turn of the tenant. */
  readonly turn: number;
  readonly host: { readonly turn: number; readonly receiver: OracleReceiver };
}

/** The hosts that may get another delivery, in the order of their turns. */
function chances(state: OracleState, count: DeliveryCount): Chance[] {
  return state.deliveryTurns
    .filter(({ tenant, proven }) => !count.isOver({ proven }) && !count.fullTenants({ proven }).has(tenant))
    .toSorted((a, b) => Number(b.proven) - Number(a.proven) || compare(a.tenant, b.tenant))
    .flatMap(({ tenant, proven, turn }) => {
      const full = count.fullHosts({ tenant, proven });
      return state.receivers
        .filter((each) => each.tenant === tenant && isProven(each) === proven && !full.has(each.host))
        .toSorted((a, b) => compare(a.host, b.host))
        .flatMap((receiver) =>
          turn === null || receiver.turn === null ? [] : [{ turn, host: { turn: receiver.turn, receiver } }],
        )
        .toSorted((a, b) => a.host.turn - b.host.turn);
    })
    .toSorted((a, b) => a.turn - b.turn);
}

function handOut(
  state: OracleState,
  receiver: OracleReceiver,
  { now, holdMs }: { now: number; holdMs: number },
): ClaimedDelivery[] {
  const delivery = state.deliveries
    .filter(({ tenant, host }) => tenant === receiver.tenant && host === receiver.host)
    .filter(({ dueAt }) => dueAt !== null && dueAt <= now)
    .toSorted((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0) || a.seq - b.seq)[0];
  const task = state.tasks.find(({ seq }) => seq === delivery?.taskSeq);
  if (delivery === undefined || task === undefined) throw new Error("A turn comes with a delivery.");
  delivery.tries += 1;
  delivery.dueAt = now + holdMs;
  delivery.lastTryAt = now;
  refreshReceiver(state, receiver);
  return [{ delivery: recordOf(state, delivery), task: toRecord(task) }];
}

function nextAt(state: OracleState, count: DeliveryCount, last: number): number | null {
  const turns = state.deliveryTurns
    .filter(({ tenant, proven }) => !count.isOver({ proven }) && !count.fullTenants({ proven }).has(tenant))
    .flatMap(({ tenant, proven, turn }) => {
      if (turn === null || turn > last) return turn ?? [];
      // All its hosts that are due have used up their share.
      const full = count.fullHosts({ tenant, proven });
      return state.receivers
        .filter((each) => each.tenant === tenant && isProven(each) === proven && !full.has(each.host))
        .flatMap((each) => each.turn ?? []);
    });
  return turns.length === 0 ? null : Math.floor(Math.min(...turns) / TURNS_PER_MS);
}

function compare(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}
