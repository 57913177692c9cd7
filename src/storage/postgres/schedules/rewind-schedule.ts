import type { DueRow, RewindParams, ScheduleName } from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { readSql } from "../connection/sql-file.ts";
import { cleanText } from "../connection/text.ts";

export async function dueRows(
  db: PostgresDatabase,
  { tenant, id, after, limit }: ScheduleName & { after: number; limit: number },
): Promise<DueRow[]> {
  const rows = await db.read<{
    id: string;
    first_due_at: string;
    due_at: string;
    moments: number;
    started: boolean;
  }>({
    name: "due_rows",
    text: `select id, first_due_at, due_at, moments, started_at is not null as started
             from run where schedule = $2 and due_at > $3 and not forced and (tenant = $1) is true
            order by due_at limit $4`,
    values: [tenant, id, after, limit],
  });
  return rows.map((row) => ({
    runId: Number(row.id),
    firstDueAt: Number(row.first_due_at),
    dueAt: Number(row.due_at),
    moments: row.moments,
    started: row.started,
  }));
}

/** Undoes what was written for due times that are later than the database's clock. */
export async function rewindSchedule(db: PostgresDatabase, params: RewindParams): Promise<boolean> {
  const { tenant, id, revision, nextFireAt, reopens } = params;
  const rows = params.rows.map(({ runId, firstDueAt, dueAt, moments }) => ({
    id: runId,
    first_due_at: firstDueAt,
    due_at: dueAt,
    moments,
  }));
  const missed = params.missed.map(({ firstDueAt, dueAt, moments, reason }, n) => ({
    n,
    schedule: id,
    first_due_at: firstDueAt,
    due_at: dueAt,
    moments,
    reason: cleanText(reason),
  }));
  const [answer] = await db.write<{ rewound: boolean }>({
    name: "rewind_schedule",
    text: "select rewind_schedule($1, $2, $3, $4, $5, $6, $7, $8) as rewound",
    values: [tenant, id, revision, JSON.stringify(rows), JSON.stringify(missed), nextFireAt, reopens],
  });
  if (answer?.rewound !== true) return false;
  db.signal({ kind: "schedules" });
  return true;
}

export const REWIND_FUNCTIONS = readSql(new URL("./rewind-schedule.sql", import.meta.url));
