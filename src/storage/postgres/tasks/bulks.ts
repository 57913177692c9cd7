import {
  type BulkName,
  type BulkRecord,
  type BulkStep,
  type BulkStorage,
  ROLLUP_SLICE_OF_PRUNE,
  type SteppedBulk,
  type TaskLabels,
} from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { readSql } from "../connection/sql-file.ts";
import { isOf } from "./read-tasks.ts";

export function postgresBulks(db: PostgresDatabase): BulkStorage {
  return {
    async add({ runningMax, keptMax, ...bulk }) {
      const [row] = await db.write<{ added: boolean }>({
        name: "add_bulk",
        text: "select add_bulk($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) as added",
        values: [
          bulk.id,
          bulk.tenant,
          bulk.action,
          toText(bulk.filter),
          toText(bulk.selection),
          toText(bulk.ids),
          bulk.limit,
          bulk.matched,
          bulk.lastSeq,
          bulk.cursor,
          bulk.by,
          bulk.requestedAt,
          runningMax,
          keptMax,
        ],
      });
      const added = row?.added === true;
      if (added) db.signal({ kind: "bulks" });
      return added;
    },
    get: (name) => readBulk(db, name),
    async abort(name) {
      await db.write({
        name: "abort_bulk",
        text: "select abort_bulk($1, $2, $3)",
        values: [name.tenant, name.id],
      });
      return readBulk(db, name);
    },
    async claim({ leaseMs }) {
      const [row] = await db.write<BulkRow & { retry_ms: string | null }>({
        name: "claim_bulk",
        text: "select * from claim_bulk($1, $2)",
        values: [leaseMs],
      });
      if (row === undefined) return { bulk: null, retryMs: null };
      const retryMs = row.retry_ms === null ? null : Number(row.retry_ms);
      return { bulk: row.id === null ? null : toRecord(row), retryMs };
    },
    step: (params) => step(db, params),
  };
}

interface BulkRow {
  readonly id: string;
  readonly tenant: string;
  readonly action: BulkRecord["action"];
  readonly filter: string | null;
  readonly selection: string | null;
  readonly ids: string | null;
  readonly max_tasks: string;
  readonly matched: string;
  readonly last_seq: string;
  readonly cursor: string;
  readonly requested_by: string | null;
  readonly requested_at: string;
  readonly state: BulkRecord["state"];
  readonly done: string;
  readonly failed: string;
  readonly skipped: string;
}

async function readBulk(db: PostgresDatabase, { tenant, id }: BulkName): Promise<BulkRecord | null> {
  const [row] = await db.read<BulkRow>({
    name: "get_bulk",
    text: "select * from bulk where tenant = $1 and id = $2",
    values: [tenant, id],
  });
  return row === undefined ? null : toRecord(row);
}

function toRecord(row: BulkRow): BulkRecord {
  return {
    id: row.id,
    tenant: row.tenant,
    action: row.action,
    filter: fromText(row.filter),
    selection: fromText(row.selection),
    ids: fromText(row.ids),
    limit: Number(row.max_tasks),
    matched: Number(row.matched),
    lastSeq: Number(row.last_seq),
    cursor: Number(row.cursor),
    by: row.requested_by,
    requestedAt: Number(row.requested_at),
    state: row.state,
    done: Number(row.done),
    failed: Number(row.failed),
    skipped: Number(row.skipped),
  };
}

function toText(value: object | null): string | null {
  return value === null ? null : JSON.stringify(value);
}

function fromText<Value>(text: string | null): Value | null {
  return text === null ? null : (JSON.parse(text) as Value);
}

interface SteppedRow extends TaskLabels {
  readonly id: string | null;
  readonly token: string | null;
}

async function step(db: PostgresDatabase, params: BulkStep): Promise<SteppedBulk | null> {
  const { tenant, id, cursor, next, ids } = params;
  const rows = await db.write<SteppedRow>({
    name: "step_bulk",
    text: "select * from step_bulk($1, $2, $3, $4, $5, $6)",
    values: [tenant, id, cursor, next, ids],
  });
  if (rows.length === 0) return null;
  const bulk = await readBulk(db, params);
  // Its tenant has been deleted since.
  if (bulk === null) return null;
  const cancelled = rows.flatMap(({ id: task, token, agent, lane }) =>
    task === null
      ? []
      : [
          {
            id: task,
            found: true as const,
            was: null,
            token: token === null ? null : Number(token),
            agent,
            lane,
          },
        ],
  );
  if (bulk.action !== "delete" && ids.length > 0)
    for (const kind of ["events", "work", "due"] as const) db.signal({ kind });
  const tokens = cancelled.flatMap(({ token }) => token ?? []);
  if (tokens.length > 0) db.signal({ kind: "fenced", tokens, reason: "cancelled" });
  return { bulk, cancelled };
}

export const BULK_FUNCTIONS = readSql(new URL("./bulks.sql", import.meta.url), {
  IS_OF_TENANT: isOf("t", "p_tenant"),
  ROLLUP_SLICE_OF_PRUNE,
});
