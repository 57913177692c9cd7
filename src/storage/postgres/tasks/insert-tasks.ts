import { batchConflict } from "../../batch-conflict.ts";
import { claimOfInsert } from "../../insert-claim.ts";
import {
  type FinishedAndClaimed,
  type FullQueue,
  IDEMPOTENCY_MS,
  type InsertClaim,
  type InsertedTask,
  type InsertTasksParams,
  type NewBatch,
  type NewTask,
} from "../../storage.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { BATCH_CONFLICT, batchConflictOf, isUniqueViolation, orBoundExceeded } from "../connection/errors.ts";
import { readSql } from "../connection/sql-file.ts";
import { isDeferred } from "./deferred-work.ts";
import { type ClaimedRow, claimedWithInsert, claimValues } from "./finish-and-claim.ts";
import { PREEMPT } from "./preempt-tasks.ts";
import { RELEASED_MAX } from "./settle-moves.ts";
import { integers, sortByForm, specsOf } from "./task-forms.ts";

/** Inserts new tasks. Each is admitted or rejected by itself. */
export async function insertTasks(db: PostgresDatabase, params: InsertTasksParams): Promise<InsertedTask[]> {
  if (params.tasks.length === 0) return [];
  // What the claim left over is for other nodes: the caller knows of it.
  let isClaimed = false;
  const started = new Set<string>();
  const onClaimed = (answer: FinishedAndClaimed) => {
    isClaimed = true;
    for (const { task } of answer.claimed) started.add(task.id);
    params.claim?.onClaimed(answer);
  };
  const { claim } = params;
  const inserted = await insertOnce(
    db,
    claim === undefined ? params : { ...params, claim: { ...claim, onClaimed } },
  );
  db.signal({ kind: "events" });
  if (inserted.some(({ state }) => state === "cancelled")) db.signal({ kind: "deliveries" });
  const queued = params.tasks.filter(
    ({ id }, index) => inserted[index]?.state === "queued" && !started.has(id),
  );
  const lanes = [...new Set(queued.map(({ lane }) => lane))];
  if (isClaimed && lanes.length > 0) db.signalOthers({ kind: "work", lanes });
  else if (lanes.length > 0) db.signal({ kind: "work", lanes });
  if (inserted.some(({ runAt, deadline }) => runAt !== null || deadline !== null)) db.signal({ kind: "due" });
  return inserted;
}

async function insertOnce(db: PostgresDatabase, params: InsertTasksParams): Promise<InsertedTask[]> {
  try {
    return await callInsert(db, params);
  } catch (error) {
    const conflict = batchConflictOf(error);
    if (conflict !== null) throw batchConflict(conflict);
    // Looking up every id first would cost each submit a search for what almost never happens.
    if (!isUniqueViolation(error)) throw orBoundExceeded(error);
    const known = await alreadyInserted(db, params.tasks);
    const isFirst = (id: string, index: number) => params.tasks.findIndex((task) => task.id === id) === index;
    const unknown = params.tasks.filter(({ id }, index) => !known.has(id) && isFirst(id, index));
    if (unknown.length === params.tasks.length) throw error;
    const { claim: _, ...others } = params;
    const inserted = unknown.length === 0 ? [] : await insertOnce(db, { ...others, tasks: unknown });
    const answers = new Map([...known, ...unknown.map(({ id }, index) => [id, inserted[index]] as const)]);
    return params.tasks.flatMap(({ id }) => answers.get(id) ?? []);
  }
}

async function callInsert(db: PostgresDatabase, params: InsertTasksParams): Promise<InsertedTask[]> {
  const { tasks, batches = [], limits, bounds: submitBounds } = params;
  const { forms, formOf, positions } = sortByForm(tasks);
  const specs = specsOf(tasks);
  const given = [`[${forms.join(",")}]`, integers(formOf), tasks.map(({ id }) => id), specs.join("\n")];
  const bounds = [
    JSON.stringify(batches.map(toBatchRow)),
    limits.maxQueueSize,
    limits.maxQueueSizeTotal,
    limits.maxPerAgent,
  ];
  if (submitBounds !== undefined || tasks.some(({ idempotency }) => idempotency !== null)) {
    const keys = tasks.map(({ idempotency }) => idempotency?.key ?? null);
    const hashes = tasks.map(({ idempotency }) => idempotency?.hash ?? null);
    const [keyed] = await db.writeDurably<Pick<InsertedFormsRow, "each">>({
      name: "insert_keyed_tasks",
      results: 1,
      values: [
        ...given,
        keys,
        hashes,
        ...bounds,
        submitBounds === undefined ? null : JSON.stringify(submitBounds),
      ],
    });
    return (keyed?.each ?? []).map(toInserted);
  }
  const values = [...given, integers(positions), ...bounds];
  const claim = claimOfInsert(params);
  const [row] =
    claim === undefined
      ? await db.writeDurably<InsertedFormsRow>({
          name: "insert_tasks",
          results: 4,
          values,
        })
      : await insertAndClaim(db, values, { specs, claim });
  if (row === undefined) throw new Error("The function returns a row for every task.");
  if (row.each !== null) return row.each.map(toInserted);
  return tasks.map((task, n) =>
    toResult(row, { task, n, form: formOf[n] ?? 0, agentPosition: positions[n] ?? 0 }),
  );
}

/** The tasks that start do not wait for the disk. */
async function insertAndClaim(
  db: PostgresDatabase,
  values: readonly unknown[],
  {
    specs,
    claim: { node, claims, onClaimed },
  }: { readonly specs: readonly string[]; readonly claim: InsertClaim },
): Promise<InsertedFormsRow[]> {
  const { rows, durable } = await db.writeEarly<InsertedFormsRow & ClaimedRow>({
    name: "insert_and_claim",
    text: `select f.* from (select set_config('synchronous_commit', 'off', true)) early,
             insert_and_claim($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) f`,
    values: [...values, node, ...claimValues(claims), db.othersAlive],
  });
  for (const row of rows) onClaimed(await claimedWithInsert(db, row, { node, specs }));
  await durable;
  return rows;
}

/** The result of a call. If every task was accepted and none has dependencies, the result of each form says it all. */
interface InsertedFormsRow {
  readonly first_seq: string;
  readonly created_at: string;
  readonly forms: readonly {
    readonly state: InsertedTask["state"];
    readonly waiting: number;
    readonly deadline: number | null;
    readonly unserved: boolean;
  }[];
  /** The results of the tasks one by one, if forms do not suffice; else null. */
  readonly each: readonly InsertedRow[] | null;
}

function toResult(
  { first_seq, created_at, forms }: InsertedFormsRow,
  { task, n, form, agentPosition }: { task: NewTask; n: number; form: number; agentPosition: number },
): InsertedTask {
  const taken = forms[form - 1];
  if (taken === undefined) throw new Error("Every task has a form.");
  return {
    seq: Number(first_seq) + n,
    id: task.id,
    state: taken.state,
    position: taken.state === "queued" ? taken.waiting + agentPosition : 0,
    createdAt: Number(created_at),
    runAt: task.runAt,
    deadline: taken.deadline,
    rejection: null,
    repeats: null,
    ...(taken.unserved ? { unserved: true } : {}),
  };
}

export interface InsertedRow {
  readonly seq: string;
  readonly id: string;
  readonly state: InsertedTask["state"];
  readonly position: number;
  readonly created_at: string;
  readonly run_at: string | null;
  readonly deadline: string | null;
  readonly full: FullQueue | null;
  readonly queued: string | null;
  readonly repeats: "same" | "other" | null;
  readonly unserved: boolean;
}

function toBatchRow({ id, tenant, parallelism, callbackUrl }: NewBatch): object {
  return { id, tenant, parallelism, callback_url: callbackUrl };
}

export function toInserted(row: InsertedRow): InsertedTask {
  return {
    seq: Number(row.seq),
    id: row.id,
    state: row.state,
    position: row.position,
    createdAt: Number(row.created_at),
    runAt: row.run_at === null ? null : Number(row.run_at),
    deadline: row.deadline === null ? null : Number(row.deadline),
    rejection: row.full === null ? null : { full: row.full, queued: Number(row.queued) },
    repeats: row.repeats,
    ...(row.unserved ? { unserved: true } : {}),
  };
}

/** The results of tasks that an earlier insert has already stored. The response to that insert was lost. */
async function alreadyInserted(
  db: PostgresDatabase,
  tasks: readonly NewTask[],
): Promise<Map<string, InsertedTask>> {
  const rows = await db.readDurably<InsertedRow>({
    name: "already_inserted",
    text: "select * from already_inserted($1)",
    values: [tasks.map(({ id }) => id)],
  });
  return new Map(rows.map((row) => [row.id, toInserted(row)]));
}

/** What follows once all tasks are inserted. */
const FOLLOW_UP = `
  if json_array_length(p_batches) > 0 then perform settle_new_batches(p_batches); end if;
  if exists (select 1 from release) or ${isDeferred("sessions")} or ${isDeferred("batches")} or ${isDeferred("keys")} then
    perform settle_moves(v_now, ${RELEASED_MAX});
  end if;
  ${PREEMPT}`;

export const INSERT_FUNCTIONS = readSql(new URL("./insert-tasks.sql", import.meta.url), {
  FOLLOW_UP,
  IDEMPOTENCY_MS,
  BATCH_CONFLICT,
});
