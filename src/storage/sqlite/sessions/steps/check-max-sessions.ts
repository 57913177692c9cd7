import type { SessionName } from "../../../storage.ts";
import { tooManySessions } from "../../../too-many-sessions.ts";
import type { Transaction } from "../../connection/transaction.ts";
import { findSessionRow } from "../session-row.ts";

/** Throws if the session would get settings and its tenant has reached its limit of sessions with settings. */
export function checkMaxSessions(
  tx: Transaction,
  { tenant, key }: SessionName,
  maxSessions: number | null = null,
): void {
  if (maxSessions === null || findSessionRow(tx.db, { tenant, key })?.pinned === 1) return;
  const count = tx
    .prepare<{ n: number }>(
      `select count(*) as n from (select 1 from session indexed by session_pinned
                                   where tenant = ? and pinned = 1 limit +?)`,
    )
    .get(tenant, maxSessions);
  if ((count?.n ?? 0) >= maxSessions) throw tooManySessions(maxSessions);
}
