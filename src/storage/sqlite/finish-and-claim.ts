import type { FinishAndClaimParams, FinishedAndClaimed } from "../storage.ts";
import { claimTasks } from "./claim-tasks.ts";
import type { SqliteDatabase } from "./database.ts";
import { expireOverdue } from "./expire-tasks.ts";
import { finishHeldTasks, writeProgress } from "./finish-held-tasks.ts";
import { Ledger } from "./ledger.ts";
import { preemptTasks } from "./preempt-tasks.ts";
import { settleMoves } from "./settle-moves.ts";

/** So many overdue tasks one claim fails itself; what is left after that is the timekeeper's. */
const EXPIRED_PER_CLAIM_MAX = 1000;

/** One transaction for what a busy node does all the time: end attempts, start others in their place. */
export async function finishAndClaim(
  db: SqliteDatabase,
  params: FinishAndClaimParams,
): Promise<FinishedAndClaimed> {
  return db.write((now) => {
    if (!isAlive(db, params.node)) return { finished: [], claimed: [], expired: [] };
    const ledger = new Ledger(db);
    writeProgress(db, ledger, params, now);
    const finished = finishHeldTasks(db, ledger, params, now);
    const expired = params.claims.length > 0 ? expireOverdue(db, ledger, EXPIRED_PER_CLAIM_MAX, now) : [];
    settleMoves(db, ledger, now);
    const claimed = params.claims.flatMap((claim) =>
      claimTasks(db, ledger, { node: params.node, ...claim }, now),
    );
    preemptTasks(db, ledger, now);
    ledger.save();
    if (finished.length + claimed.length + expired.length + params.progress.length > 0)
      db.signal({ kind: "events" });
    if (finished.some(({ state }) => state === "delayed")) db.signal({ kind: "due" });
    return { finished, claimed, expired };
  });
}

function isAlive(db: SqliteDatabase, node: string): boolean {
  return db.prepare("select 1 from node where id = ? and dead = 0").get(node) !== undefined;
}
