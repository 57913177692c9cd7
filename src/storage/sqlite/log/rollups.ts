import { ROLLUP_RETENTION_MS, ROLLUP_STEPS, type RollupCount } from "../../../model/rollup.ts";
import type { ReadRollupsParams, RollupRow, RollupStorage } from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import type { Transaction } from "../connection/transaction.ts";
import { nextEventAt, rollUp } from "./steps/roll-up.ts";

export function sqliteRollups(db: SqliteDatabase): RollupStorage {
  return {
    // A slice lost in a power cut is counted again, so this transaction does not wait for the disk.
    advance: async ({ limit }) => db.transact((tx) => rollUp(tx, limit)),
    read: (params) => readRollups(db, params),
    async lateMs() {
      const at = nextEventAt(db);
      return at === null ? 0 : Math.max(db.now() - at, 0);
    },
    prune: async ({ limit }) => db.transact((tx) => pruneRollups(tx, limit)),
  };
}

async function readRollups(
  db: SqliteDatabase,
  { tenant, kind, step, from, to, after, limit }: ReadRollupsParams,
): ReturnType<RollupStorage["read"]> {
  const found = await db.read(() =>
    db
      .prepare<StoredRow>(
        `select * from rollup
          where tenant = @tenant and kind = @kind and step = @step and at < @to
            and (at, key) ${after === undefined ? ">=" : ">"} (@at, @key)
          order by at, key limit +@limit`,
      )
      .all({ tenant, kind, step, to, at: from, key: "", ...after, limit: limit + 1 }),
  );
  const rows = found.slice(0, limit).map(toRow);
  const last = rows.at(-1);
  const isMore = found.length > limit && last !== undefined;
  return { rows, next: isMore ? { at: last.at, key: last.key } : null };
}

interface StoredRow extends Readonly<Record<RollupCount, number>> {
  readonly at: number;
  readonly key: string;
  readonly wait: string;
  readonly wait_max: number;
  readonly run: string;
  readonly run_max: number;
}

function toRow(row: StoredRow): RollupRow {
  const { at, key, submitted, started, done, failed, cancelled, tokens } = row;
  const wait = { buckets: JSON.parse(row.wait), max: row.wait_max };
  const run = { buckets: JSON.parse(row.run), max: row.run_max };
  return { at, key, submitted, started, done, failed, cancelled, tokens, wait, run };
}

/** Also deletes rows of the distant future, which were written while the clock was wrong. */
function pruneRollups(tx: Transaction, limit: number): { more: boolean } {
  const { now } = tx;
  const remove = (condition: string) =>
    tx.prepare(
      `delete from rollup where (tenant, kind, step, at, key) in
         (select tenant, kind, step, at, key from rollup where step = ? and ${condition} limit +?)`,
    );
  let left = limit;
  for (const step of ROLLUP_STEPS) {
    const keptMs = ROLLUP_RETENTION_MS[step];
    if (left > 0) left -= remove("at < ?").run(step, now - keptMs, left).changes;
    if (left > 0) left -= remove("at > ?").run(step, now + keptMs, left).changes;
  }
  return { more: left === 0 };
}
