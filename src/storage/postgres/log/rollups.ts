import type { RollupCount } from "../../../model/rollup.ts";
import type { ReadRollupsParams, RollupRow, RollupStorage } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { COUNTED_UP_TO } from "./roll-up.ts";

export function postgresRollups(db: PostgresDatabase): RollupStorage {
  return {
    async advance({ limit }) {
      const [row] = await db.write<{ events: number; more: boolean }>({
        name: "roll_up",
        text: "select * from roll_up($1, $2)",
        values: [limit],
      });
      return row ?? { events: 0, more: false };
    },
    read: (params) => readRollups(db, params),
    async lateMs() {
      const [row] = await db.write<{ late_ms: string }>({
        name: "rollups_late",
        text: `select greatest(coalesce($1::bigint, floor(extract(epoch from clock_timestamp()) * 1000)::bigint) - e.at, 0) as late_ms
                 from event e where e.last_seq > ${COUNTED_UP_TO}
                order by e.last_seq limit 1`,
        values: [],
      });
      return Number(row?.late_ms ?? 0);
    },
    async prune({ limit }) {
      const [row] = await db.write<{ more: boolean }>({
        name: "prune_rollups",
        text: "select prune_rollups($1, $2) as more",
        values: [limit],
      });
      return { more: row?.more ?? false };
    },
  };
}

async function readRollups(
  db: PostgresDatabase,
  { tenant, kind, step, from, to, after, limit }: ReadRollupsParams,
): ReturnType<RollupStorage["read"]> {
  const found = await db.read<StoredRow>({
    name: `read_rollups_${after === undefined}`,
    text: `select * from rollup
            where tenant = $1 and kind = $2 and step = $3 and at < $4
              and (at, key) ${after === undefined ? ">=" : ">"} ($5, $6)
            order by at, key limit $7`,
    values: [tenant, kind, step, to, after?.at ?? from, after?.key ?? "", limit + 1],
  });
  const rows = found.slice(0, limit).map(toRow);
  const last = rows.at(-1);
  const isMore = found.length > limit && last !== undefined;
  return { rows, next: isMore ? { at: last.at, key: last.key } : null };
}

interface StoredRow extends Readonly<Record<RollupCount, string>> {
  readonly at: string;
  readonly key: string;
  readonly wait: readonly string[];
  readonly wait_max: string;
  readonly run: readonly string[];
  readonly run_max: string;
}

function toRow(row: StoredRow): RollupRow {
  return {
    at: Number(row.at),
    key: row.key,
    submitted: Number(row.submitted),
    started: Number(row.started),
    done: Number(row.done),
    failed: Number(row.failed),
    cancelled: Number(row.cancelled),
    tokens: Number(row.tokens),
    wait: { buckets: row.wait.map(Number), max: Number(row.wait_max) },
    run: { buckets: row.run.map(Number), max: Number(row.run_max) },
  };
}
