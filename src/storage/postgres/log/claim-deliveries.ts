import type { ClaimDeliveriesParams, ClaimedDeliveries } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { readSql } from "../connection/sql-file.ts";
import { TASK_COLUMNS, TASK_TABLES, type TaskRow, toTaskRecords } from "../tasks/task-row.ts";
import { DELIVERY_COLUMNS, DELIVERY_TABLES, type DeliveryRow, toDeliveryRecord } from "./delivery-row.ts";
import { TURNS_PER_MS } from "./receivers.ts";

export async function claimDeliveries(
  db: PostgresDatabase,
  { shares, held, holdMs }: ClaimDeliveriesParams,
): Promise<ClaimedDeliveries> {
  const rows = await db.write<ClaimedRow>({
    name: "claim_deliveries",
    text: "select * from claim_deliveries($1, $2, $3, $4)",
    values: [JSON.stringify(shares), JSON.stringify(held), holdMs],
  });
  const nextAt = rows[0]?.next_at ?? null;
  const claimed = rows.filter(isDelivery);
  const tasks = await tasksOf(db, claimed);
  return {
    claimed: claimed.flatMap((row) => {
      const delivery = toDeliveryRecord(row);
      const task = tasks.get(delivery.taskSeq);
      // The task was pruned in between, and its deliveries with it.
      return task === undefined ? [] : [{ delivery, task }];
    }),
    nextAt: nextAt === null ? null : Number(nextAt),
  };
}

/** There is always one row, because it has `next_at`. Its `seq` is null if no delivery was claimed. */
type ClaimedRow = { readonly next_at: string | null } & (DeliveryRow | { readonly seq: null });

function isDelivery(row: ClaimedRow): row is ClaimedRow & DeliveryRow {
  return row.seq !== null;
}

async function tasksOf(db: PostgresDatabase, claimed: readonly DeliveryRow[]) {
  if (claimed.length === 0) return new Map();
  const rows = await db.read<TaskRow>({
    name: "tasks_of_deliveries",
    text: `select ${TASK_COLUMNS} from ${TASK_TABLES} where t.seq = any ($1)`,
    values: [claimed.map(({ task_seq }) => task_seq)],
  });
  return new Map((await toTaskRecords(db, rows)).map((task) => [task.seq, task]));
}

/** The rules of `DeliveryCount`, in SQL. */
const FREE = "p_shares.slots - cardinality(p_held)";
const UNPROVEN_FREE = `p_shares."unprovenSlots" - (select count(*) from unnest(p_held) h where not h.proven)`;

export const CLAIM_DELIVERY_FUNCTIONS = readSql(new URL("./claim-deliveries.sql", import.meta.url), {
  FREE,
  UNPROVEN_FREE,
  TURNS_PER_MS,
  LAST_TURN_OF_MS: TURNS_PER_MS - 1,
  DELIVERY_COLUMNS,
  DELIVERY_TABLES,
});
