import { DeliveryCount } from "../../../model/delivery-shares.ts";
import type { ClaimDeliveriesParams, ClaimedDeliveries, ClaimedDelivery } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";
import { TASK_COLUMNS, type TaskRow, taskTables, toTaskRecord } from "../tasks/task-row.ts";
import { DELIVERY_COLUMNS, DELIVERY_TABLES, type DeliveryRow, toDeliveryRecord } from "./delivery-row.ts";
import { type Receiver, refreshReceiver, TURNS_PER_MS } from "./steps/receivers.ts";

const KINDS = [{ proven: true }, { proven: false }] as const;

export async function claimDeliveries(
  db: SqliteDatabase,
  params: ClaimDeliveriesParams,
): Promise<ClaimedDeliveries> {
  const claimed = db.transact((tx) => claimInTurn(tx, params));
  // `finishAndClaim`, which does not wait for the disk, may have written the ends that they report just now.
  if (claimed.claimed.length > 0) await db.durable();
  return claimed;
}

/** Claims deliveries one by one: the next turn depends on which tenant and host were served last. */
function claimInTurn(tx: Transaction, { shares, held, holdMs }: ClaimDeliveriesParams): ClaimedDeliveries {
  const { now } = tx;
  const count = new DeliveryCount(shares, held);
  const claim = new Claim(tx, count);
  const claimed: ClaimedDelivery[] = [];
  for (let next = claim.next(); next !== null; next = claim.next()) {
    const served = now * TURNS_PER_MS + Math.min(claimed.length + 1, TURNS_PER_MS - 1);
    const delivery = hold(tx, next, { until: now + holdMs, served });
    if (delivery !== null) {
      claimed.push(delivery);
      count.add(next);
    }
    // Also if there was no delivery, because another program deleted it: this corrects the turn.
    refreshReceiver(tx, next);
  }
  return { claimed, nextAt: claim.nextAt() };
}

interface Turn {
  readonly tenant: string;
  readonly turn: number;
}

interface Chosen extends Receiver {
  readonly proven: boolean;
}

class Claim {
  readonly #tx: Transaction;
  readonly #count: DeliveryCount;
  /** Turns up to this one are due. */
  readonly #last: number;
  /** By kind of host: tenants below their share, all of whose due hosts have reached theirs. */
  readonly #passedOver = { true: new Set<string>(), false: new Set<string>() };

  constructor(tx: Transaction, count: DeliveryCount) {
    this.#tx = tx;
    this.#count = count;
    this.#last = tx.now * TURNS_PER_MS + TURNS_PER_MS - 1;
  }

  /** The host whose turn is next; null: none may be served now. */
  next(): Chosen | null {
    for (;;) {
      const kind = this.#nextKind();
      if (kind === null) return null;
      const { tenant, proven } = kind;
      const host = this.#firstHost({ tenant, proven, due: true })?.host;
      if (host !== undefined) return { tenant, host, proven };
      this.#passedOver[`${proven}`].add(tenant);
    }
  }

  nextAt(): number | null {
    const turns = KINDS.filter((kind) => !this.#count.isOver(kind)).flatMap(({ proven }) => {
      const full = this.#count.fullTenants({ proven });
      const passedOver = [...this.#passedOver[`${proven}`]].filter((tenant) => !full.has(tenant));
      return [
        this.#firstTenant({ proven, due: false })?.turn ?? [],
        ...passedOver.map((tenant) => this.#firstHost({ tenant, proven, due: false })?.turn ?? []),
      ].flat();
    });
    return turns.length === 0 ? null : Math.floor(Math.min(...turns) / TURNS_PER_MS);
  }

  #nextKind(): (Turn & { proven: boolean }) | null {
    const [proven, unproven] = KINDS.map((kind) => {
      const first = this.#count.isOver(kind) ? null : this.#firstTenant({ ...kind, due: true });
      return first === null ? null : { ...first, ...kind };
    });
    if (!proven || !unproven) return proven ?? unproven ?? null;
    return unproven.turn < proven.turn ? unproven : proven;
  }

  /** The first tenant that is due (or with `due: false` not due yet) and may get a delivery. */
  #firstTenant({ proven, due }: { proven: boolean; due: boolean }): Turn | null {
    const turns = this.#tx
      .prepare<Turn>(
        `select tenant, turn from delivery_turn where proven = ? and turn ${due ? "<=" : ">"} ? order by turn, tenant`,
      )
      .iterate(proven ? 1 : 0, this.#last);
    const full = this.#count.fullTenants({ proven });
    const passedOver = this.#passedOver[`${proven}`];
    return firstOf(turns, ({ tenant }) => !full.has(tenant) && !passedOver.has(tenant));
  }

  #firstHost({ tenant, proven, due }: { tenant: string; proven: boolean; due: boolean }) {
    const hosts = this.#tx
      .prepare<{ host: string; turn: number }>(
        `select host, turn from receiver where tenant = ? and proven = ? and turn ${due ? "<=" : ">"} ?
          order by turn, host`,
      )
      .iterate(tenant, proven ? 1 : 0, this.#last);
    const full = this.#count.fullHosts({ tenant, proven });
    return firstOf(hosts, ({ host }) => !full.has(host));
  }
}

/** Returns the first row that fits and reads no further. */
function firstOf<Row>(rows: Iterable<Row>, fits: (row: Row) => boolean): Row | null {
  for (const row of rows) if (fits(row)) return row;
  return null;
}

/** Claims the delivery of a host that has been due longest. Null: none is due. */
function hold(
  tx: Transaction,
  { tenant, host, proven }: Chosen,
  { until, served }: { until: number; served: number },
): ClaimedDelivery | null {
  const { now } = tx;
  const row = tx
    .prepare<DeliveryRow>(
      `select ${DELIVERY_COLUMNS} from ${DELIVERY_TABLES}
        where d.tenant = ? and d.host = ? and d.due_at <= ? order by d.due_at, d.seq limit 1`,
    )
    .get(tenant, host, now);
  if (row === undefined) return null;
  tx.prepare("update delivery set tries = tries + 1, due_at = ?, last_try_at = ? where seq = ?").run(
    until,
    now,
    row.seq,
  );
  tx.prepare("update receiver set served = ? where tenant = ? and host = ?").run(served, tenant, host);
  tx.prepare("update delivery_turn set served = ? where tenant = ? and proven = ?").run(
    served,
    tenant,
    proven ? 1 : 0,
  );
  const held = { ...row, tries: row.tries + 1, due_at: until, last_try_at: now };
  const task = tx
    .prepare<TaskRow>(`select ${TASK_COLUMNS} from ${taskTables()} where t.seq = ?`)
    .get(row.task_seq) as TaskRow;
  return { delivery: toDeliveryRecord(held), task: toTaskRecord(tx.db, task) };
}
