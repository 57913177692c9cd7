import {
  type Claim,
  type ClaimedTask,
  EXPIRED_PER_CLAIM_MAX,
  type FinishAndClaimParams,
  type FinishedAndClaimed,
  KEYS_LOOKED_AT,
} from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";
import type { AgentQueue } from "../counters/ledger.ts";
import { IS_ALONE, isExecutable } from "../counters/standing.ts";
import { type SlotsLeft, slotsLeft } from "../tenants/tenant-shares.ts";
import { transactEnds } from "./stale-lease.ts";
import {
  ALONE_LOOKED_AT,
  claimAhead,
  claimAloneTask,
  claimTasks,
  isCriticalLeft,
} from "./steps/claim-tasks.ts";
import { isAnyKeyContested, passKeysOn } from "./steps/concurrency-keys.ts";
import { expireOverdue } from "./steps/expire-overdue.ts";
import { beginAndFinish, writeProgress } from "./steps/finish-held-tasks.ts";

/** One transaction for what a busy node does all the time: end attempts and start others. */
export async function finishAndClaim(
  db: SqliteDatabase,
  params: FinishAndClaimParams,
): Promise<FinishedAndClaimed> {
  return transactEnds(db, (tx) => {
    if (!isAlive(db, params.node)) return { finished: [], claimed: [], expired: [] };
    writeProgress(tx, params);
    const finished = beginAndFinish(tx, params);
    const expired = params.claims.length > 0 ? expireOverdue(tx, EXPIRED_PER_CLAIM_MAX) : [];
    tx.settle();
    const claimed: ClaimedTask[] = [];
    const criticalWaits: string[] = [];
    for (const claim of params.claims) {
      const left = () => (params.claimsMax ?? Number.POSITIVE_INFINITY) - claimed.length;
      const slots = slotsLeft(tx.ledger.lane(claim.lane), claim.perTenant);
      const limit = Math.min(claim.limit, left());
      const asked = { node: params.node, claim: { ...claim, limit }, slots, hasEnded: finished.length > 0 };
      claimed.push(...claimFromLane(tx, asked));
      if (claim.ahead === undefined) continue;
      const ahead = {
        node: params.node,
        lane: claim.lane,
        limit: Math.min(claim.ahead, left()),
        left: slots,
      };
      if (isCriticalLeft(tx, claim.lane)) criticalWaits.push(claim.lane);
      else claimed.push(...claimAhead(tx, ahead));
    }
    tx.save();
    // A started task may now block the holder of a key. Another task could take the key in a lane that this call has already
    // claimed from.
    if (claimed.length > 0 && isAnyKeyContested(tx)) tx.signal("work");
    const written = finished.length + claimed.length + expired.length + params.progress.length;
    if (written + (params.begun?.length ?? 0) > 0) tx.signal("events");
    if (finished.some(({ state }) => state === "delayed")) tx.signal("due");
    return { finished, claimed, expired, ...(criticalWaits.length > 0 && { criticalWaits }) };
  });
}

/** Claims a task that must run alone, for a node that runs nothing else. */
export async function claimAlone(
  db: SqliteDatabase,
  params: { node: string; lanes: readonly string[] },
): Promise<FinishedAndClaimed> {
  return db.transact((tx) => {
    if (!isAlive(db, params.node)) return { finished: [], claimed: [], expired: [] };
    const expired = expireOverdue(tx, EXPIRED_PER_CLAIM_MAX);
    tx.settle();
    const claimed = claimAloneTask(tx, params);
    if (claimed.length + expired.length > 0) tx.signal("events");
    return { finished: [], claimed, expired };
  });
}

/** Only one node is alive at a time, so a task that a live node can execute is one that this node can. */
export async function isAloneWaiting(
  db: SqliteDatabase,
  { node, lanes }: { node: string; lanes: readonly string[] },
): Promise<boolean> {
  return db.read(() => {
    if (!isAlive(db, node)) return false;
    const agentQueues = db
      .prepare<Pick<AgentQueue, "tenant" | "agent" | "kind">>(
        `select tenant, agent, kind from line
          where ${IS_ALONE} and ready > 0 and lane in (select value from json_each(?))
            and not exists (select 1 from tenant_line t where t.tenant = line.tenant and t.lane = line.lane and t.disabled = 1)
          order by last_served, id limit ${ALONE_LOOKED_AT}`,
      )
      .all(JSON.stringify(lanes));
    return agentQueues.some((agentQueue) => isExecutable(db, agentQueue));
  });
}

interface AskedClaim {
  readonly node: string;
  readonly claim: Claim;
  /** How many slots of the lane on this node each tenant may still take; null: no limit. */
  readonly slots: SlotsLeft | null;
  readonly hasEnded: boolean;
}

/**
 * Passes concurrency keys on when slots stay unused. On a busy node none ever do, so it also passes keys on whenever something
 * ended.
 */
function claimFromLane(tx: Transaction, { node, claim, slots: left, hasEnded }: AskedClaim): ClaimedTask[] {
  const lane = tx.ledger.lane(claim.lane);
  if (hasEnded && claim.limit > 0) passKeysOn(tx, { lane, left }, KEYS_LOOKED_AT.afterEnd);
  const params = { node, lane: claim.lane, limit: claim.limit, state: claim.state ?? "running", left };
  const claimed = claimTasks(tx, params);
  while (claimed.length < claim.limit && passKeysOn(tx, { lane, left }, KEYS_LOOKED_AT.keys)) {
    const more = claimTasks(tx, { ...params, limit: claim.limit - claimed.length });
    if (more.length === 0) break;
    claimed.push(...more);
  }
  return claimed;
}

function isAlive(db: SqliteDatabase, node: string): boolean {
  return db.prepare("select 1 from node where id = ? and dead = 0").get(node) !== undefined;
}
