import type { SqliteDatabase } from "./database.ts";
import type { LaneRow, Ledger } from "./ledger.ts";
import { TENANT_LINE_COLUMNS, type TenantLine } from "./tenant-ledger.ts";

interface Sharer {
  readonly line: TenantLine;
  inflight: number;
  lastServed: number;
  owed: number;
  left: number;
}

/**
 * Whose turns the next `slots` starts of a lane are, one entry for each: who gave up a slot for a task of its own that has
 * yet to get it, else who has the fewest in flight, ties to the one served longest ago. Changes nothing.
 */
export function shareOut(db: SqliteDatabase, ledger: Ledger, lane: LaneRow, slots: number): TenantLine[] {
  const sharers = candidates(db, ledger, lane, slots);
  const [only] = sharers;
  if (only === undefined) return [];
  if (sharers.length === 1) return new Array<TenantLine>(Math.min(slots, only.left)).fill(only.line);
  const turns: TenantLine[] = [];
  while (turns.length < slots) {
    let next: Sharer | undefined;
    for (const other of sharers) {
      if (other.left > 0 && (next === undefined || compare(other, next) < 0)) next = other;
    }
    if (next === undefined) break;
    turns.push(next.line);
    next.inflight += 1;
    next.lastServed = db.lastEventSeq + turns.length;
    next.owed = Math.max(next.owed - 1, 0);
    next.left -= 1;
  }
  return turns;
}

/** The first ones by the index, and those that this transaction has changed, since the index does not know of that yet. */
function candidates(db: SqliteDatabase, ledger: Ledger, lane: LaneRow, slots: number): Sharer[] {
  ledger.countTenants();
  const touched = ledger.tenants.touchedIn(lane.name);
  const rows = db
    .prepare<TenantLine>(
      `select ${TENANT_LINE_COLUMNS} from tenant_line where lane = ? and startable = 1
        order by owed = 0, inflight, last_served, id limit ?`,
    )
    .all(lane.name, slots + touched.length);
  const lines = new Set([...touched, ...rows.map((row) => ledger.tenants.adopt(row))]);
  return [...lines]
    .map((line) => ({
      line,
      inflight: line.inflight,
      lastServed: line.last_served,
      owed: line.owed,
      left: ledger.tenants.room(line),
    }))
    .filter(({ left }) => left > 0);
}

function compare(a: Sharer, b: Sharer): number {
  return (
    Number(a.owed === 0) - Number(b.owed === 0) ||
    a.inflight - b.inflight ||
    a.lastServed - b.lastServed ||
    a.line.id - b.line.id
  );
}
