import type { Transaction } from "../../connection/transaction.ts";
import { AGENT_QUEUE_COLUMNS, type AgentQueue, type LaneRow, Ledger } from "../../counters/ledger.ts";

/**
 * Updates what agent queues can start after a limit changed. It writes only queues for which that differs, since there may be
 * many.
 */
export function refreshAgentQueues(tx: Transaction, condition: string, values: readonly string[]): void {
  const ledger = new Ledger(tx.db);
  const setFlags = tx.prepare("update line set room = ?, startable = ?, ahead = ? where id = ?");
  const rows = tx
    .prepare<AgentQueue & Flags>(`select ${AGENT_QUEUE_COLUMNS}, startable from line where ${condition}`)
    .all(...values);
  for (const { startable, ...row } of rows) {
    const agentQueue = ledger.adopt(row);
    const { ahead } = row;
    const room = ledger.room(agentQueue);
    const flags: Flags = { startable: room > 0 ? 1 : 0, ahead: ledger.isAhead(agentQueue) ? 1 : 0 };
    if (room === row.room && flags.startable === startable && flags.ahead === ahead) continue;
    setFlags.run(room, flags.startable, flags.ahead, agentQueue.id);
    ledger.tenants.follow(agentQueue, row, { room, ahead: flags.ahead });
  }
  ledger.tenants.save();
  tx.db.agentQueues.clear();
}

/** Updates what tenants may hold of a lane, and so what they can start there. */
export function refreshTenants(tx: Transaction, lane: string): void {
  const changed = tx
    .prepare(`update tenant_line set lane_max = ${LANE_MAX} where lane = ? and lane_max is not ${LANE_MAX}`)
    .run(lane);
  if (changed.changes === 0) return;
  const ledger = new Ledger(tx.db);
  ledger.tenants.adoptAll(lane);
  ledger.tenants.save({ limitsChanged: true });
}

/** Pre-empts tasks in these lanes after limits or slots changed: waiting critical tasks may have gained room or lost a slot. */
export function preemptAfterChange(tx: Transaction, lanes: readonly string[]): void {
  for (const { name } of tx.prepare<LaneRow>("select * from lane").all()) {
    if (lanes.includes(name)) tx.ledger.lanesToRecheck.add(name);
  }
  tx.save();
}

interface Flags {
  readonly startable: 0 | 1;
  readonly ahead: 0 | 1;
}

/**
 * Starts or stops limiting tenants to their shares of lanes, depending on whether there is a second enabled tenant. Returns
 * whether that changed, and so what tenants can start.
 */
export function followSecondTenant(tx: Transaction): boolean {
  const enabled = tx
    .prepare<{ tenants: number }>(
      "select count(*) as tenants from (select 1 from tenant where disabled = 0 limit 2)",
    )
    .get();
  const second = (enabled?.tenants ?? 0) > 1 ? 1 : 0;
  const changed = tx
    .prepare("update lane set second_tenant = ? where second_tenant <> ?")
    .run(second, second);
  if (changed.changes === 0) return false;
  tx.prepare(`update tenant_line set lane_max = ${LANE_MAX}`).run();
  return true;
}

/** The correct `lane_max` of a row of `tenant_line`. */
const LANE_MAX = "(select l.per_tenant from lane l where l.name = tenant_line.lane and l.second_tenant = 1)";
