import { IDLE_HOSTS_MAX } from "../../../../model/delivery-shares.ts";
import type { Transaction } from "../../connection/transaction.ts";

/** Turns are counted in microseconds, so that hosts that are served within one millisecond have an order, too. */
export const TURNS_PER_MS = 1_000;

export interface Receiver {
  readonly tenant: string;
  readonly host: string;
}

/** Updates the turns of a host and its tenant after a delivery was added, changed or deleted. */
export function refreshReceiver(tx: Transaction, receiver: Receiver): void {
  const dueAt = nextDueAt(tx, receiver);
  const known = find(tx, receiver);
  if (dueAt === null) {
    if (known !== undefined) becomeIdle(tx, receiver, known);
  } else {
    tx.prepare(
      `insert into receiver (tenant, host, turn) values (@tenant, @host, @turn)
       on conflict (tenant, host) do update set turn = @turn`,
    ).run({ ...receiver, turn: turnAfter(dueAt * TURNS_PER_MS, known?.served ?? 0, tx.now) });
  }
  refreshTurns(tx, receiver.tenant);
}

/** Updates the turns of a tenant after one of its hosts changed, or after it was disabled or enabled. */
export function refreshTurns(tx: Transaction, tenant: string): void {
  const isDisabled =
    tx.prepare("select 1 from tenant where id = ? and disabled = 1").get(tenant) !== undefined;
  for (const proven of [0, 1]) {
    const first = isDisabled
      ? undefined
      : tx
          .prepare<{ turn: number }>(
            "select turn from receiver where tenant = ? and proven = ? and turn is not null order by turn limit 1",
          )
          .get(tenant, proven);
    const known = tx
      .prepare<{ served: number; turn: number | null }>(
        "select served, turn from delivery_turn where tenant = ? and proven = ?",
      )
      .get(tenant, proven);
    const turn = first === undefined ? null : turnAfter(first.turn, known?.served ?? 0, tx.now);
    if (turn === (known?.turn ?? null)) continue;
    tx.prepare(
      `insert into delivery_turn (tenant, proven, turn) values (@tenant, @proven, @turn)
       on conflict (tenant, proven) do update set turn = @turn`,
    ).run({ tenant, proven, turn });
  }
}

/**
 * The turn of a host or tenant: when it is due, but not before it was last served. If the clock was set back, it does not wait
 * for a last service in the future.
 */
function turnAfter(due: number, served: number, now: number): number {
  return Math.max(due, Math.min(served, now * TURNS_PER_MS + TURNS_PER_MS - 1));
}

function nextDueAt(tx: Transaction, receiver: Receiver): number | null {
  const next = tx
    .prepare<{ due_at: number }>(
      `select due_at from delivery where tenant = @tenant and host = @host and due_at is not null
        order by due_at, seq limit 1`,
    )
    .get(receiver);
  return next?.due_at ?? null;
}

function find(tx: Transaction, receiver: Receiver): { proven: 0 | 1; served: number } | undefined {
  return tx
    .prepare<{ proven: 0 | 1; served: number }>(
      "select proven, served from receiver where tenant = @tenant and host = @host",
    )
    .get(receiver);
}

/**
 * No delivery is pending for the host. It stays stored if it is proven; then, beyond `IDLE_HOSTS_MAX`, the idle host served
 * longest ago is deleted.
 */
function becomeIdle(tx: Transaction, receiver: Receiver, { proven }: { proven: 0 | 1 }): void {
  if (proven === 0) {
    tx.prepare("delete from receiver where tenant = @tenant and host = @host").run(receiver);
    return;
  }
  tx.prepare("update receiver set turn = null where tenant = @tenant and host = @host").run(receiver);
  tx.prepare(
    `delete from receiver
      where tenant = @tenant
        and host = (select host from receiver where tenant = @tenant and turn is null
                     order by served desc, host desc limit 1 offset ${IDLE_HOSTS_MAX})`,
  ).run({ tenant: receiver.tenant });
}
