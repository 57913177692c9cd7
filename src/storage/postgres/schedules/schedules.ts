import { SCHEDULE_DELETED } from "../../../model/schedule.ts";
import { LARGE_LENGTH } from "../../lazy-json.ts";
import {
  type DeletedSchedule,
  type DeleteScheduleParams,
  type ListSchedulesParams,
  type MakerLimit,
  type NewSchedule,
  OLDEST_NAMED,
  SCHEDULE_PAGE_BYTES,
  type ScheduleCounts,
  type ScheduleRecord,
  type ScheduleSelection,
  type ScheduleStorage,
  type UpdateScheduleParams,
} from "../../storage.ts";
import { tooManySchedules } from "../../too-many-schedules.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { BOUND_EXCEEDED, orBoundExceeded } from "../connection/errors.ts";
import { readSql } from "../connection/sql-file.ts";
import { cleanText } from "../connection/text.ts";
import { type CancelledJson, signalCancelled, toEndedTask } from "../tasks/cancel-open-tasks.ts";
import { PREEMPT } from "../tasks/preempt-tasks.ts";
import { RELEASED_MAX } from "../tasks/settle-moves.ts";
import { dueSchedules, nextScheduleAt } from "./due-schedules.ts";
import { fireSchedules } from "./fire-schedules.ts";
import { dueRows, rewindSchedule } from "./rewind-schedule.ts";
import { getRun, listRuns, pruneRuns } from "./runs.ts";
import {
  SCHEDULE_BYTES,
  type ScheduleRow,
  toColumns,
  toMakerColumns,
  toScheduleRecord,
} from "./schedule-row.ts";
import { openTasksOf } from "./write-runs.ts";

export function postgresSchedules(db: PostgresDatabase): ScheduleStorage {
  return {
    create: (params) => createSchedule(db, params),
    async get({ tenant, id }) {
      const [row] = await db.readDurably<ScheduleRow>({
        name: "get_schedule",
        text: `select * from schedule s where s.id = $2 and ${isOf("s", "$1")}`,
        values: [tenant, id],
      });
      return row === undefined ? null : toScheduleRecord(row);
    },
    async size({ tenant, id }) {
      const [row] = await db.readDurably<{ bytes: number }>({
        name: "size_of_schedule",
        text: `select ${SCHEDULE_BYTES} as bytes from schedule s where s.id = $2 and ${isOf("s", "$1")}`,
        values: [tenant, id],
      });
      return row?.bytes ?? null;
    },
    list: (params) => listSchedules(db, params),
    count: (params) => countSelected(db, params),
    async page({ tenant, after, limit }) {
      const rows = await db.readDurably<ScheduleRow>({
        name: "page_of_schedules",
        text: PAGE_OF_SCHEDULES,
        values: [tenant, after, limit],
      });
      return rows.map(toScheduleRecord);
    },
    update: (params) => updateSchedule(db, params),
    delete: (params) => deleteSchedule(db, params),
    async pauseOfKey({ tenant, key, reason, limit }) {
      const [row] = await db.write<{ paused: number }>({
        name: "pause_schedules_of_key",
        text: "select pause_schedules_of_key($1, $2, $3, $4, $5) as paused",
        values: [tenant, key, cleanText(reason), limit],
      });
      const paused = row?.paused ?? 0;
      if (paused > 0) db.signal({ kind: "schedules" });
      return { paused, more: paused === limit };
    },
    ofMaker: ({ tenant, limit }) => ofMaker(db, tenant, limit),
    status: ({ tenant }) => countSchedules(db, tenant),
    due: (params) => dueSchedules(db, params),
    nextDueAt: (params) => nextScheduleAt(db, params),
    fire: (params) => fireSchedules(db, params),
    dueRows: (params) => dueRows(db, params),
    rewind: (params) => rewindSchedule(db, params),
    getRun: (params) => getRun(db, params),
    listRuns: (params) => listRuns(db, params),
    prune: (params) => pruneRuns(db, params),
  };
}

/** Whether a row that is looked up by its id belongs to this tenant. No index has this expression, so the planner uses the id. */
function isOf(row: string, tenant: string): string {
  return `(${row}.tenant = ${tenant}) is true`;
}

export const PAGE_OF_SCHEDULES = upToBytes(
  "select * from schedule where '' || tenant = $1 and id + 0 > $2 order by id + 0 limit $3",
  "id",
  String(SCHEDULE_PAGE_BYTES),
);

/** The schedules of a query, up to the one with which their large texts take more than `bytesMax`. Those of the others are not read. */
function upToBytes(query: string, order: string, bytesMax: string): string {
  const bytes = [
    ...["message", "work", "metadata"].map((text) => {
      const length = `octet_length(${text})`;
      return `case when ${length} >= ${LARGE_LENGTH} then ${length} else 0 end`;
    }),
  ].join(" + ");
  return `select * from (
            select q.*, sum(${bytes}) over (order by ${order} rows between unbounded preceding and 1 preceding) as before
              from (${query}) q) p
           where coalesce(before, 0) <= ${bytesMax} order by ${order}`;
}

async function createSchedule(db: PostgresDatabase, params: NewSchedule): Promise<ScheduleRecord> {
  const { tenant, definition, status, nextFireAt, source, provenance, maxSchedules = null, ofMaker } = params;
  const maker = toMakerColumns(provenance);
  const columns = { ...toColumns({ ...definition, status, nextFireAt }), ...maker, tenant, source };
  const [row] = await db
    .write<ScheduleRow>({
      name: "create_schedule",
      text: "select * from create_schedule($1, $2, $3, $4)",
      values: [JSON.stringify(columns), maxSchedules, ofMaker === undefined ? null : JSON.stringify(ofMaker)],
    })
    .catch((error) => {
      throw orBoundExceeded(error);
    });
  if (row === undefined) throw tooManySchedules(maxSchedules ?? 0);
  db.signal({ kind: "schedules" });
  return toScheduleRecord(row);
}

/** Without `below`, each filter has an index in the order of the list. */
async function listSchedules(db: PostgresDatabase, params: ListSchedulesParams): Promise<ScheduleRecord[]> {
  const { text, values } = listOfSchedules(params);
  const rows = await db.readDurably<ScheduleRow>({ text, values });
  return rows.map(toScheduleRecord);
}

export function listOfSchedules(params: ListSchedulesParams): { text: string; values: unknown[] } {
  const { tenant, status, agent, limit, below, bytesMax } = params;
  const values: unknown[] = [tenant, limit];
  const conditions = [
    below !== undefined
      ? `'' || tenant = $1 and id + 0 < $${values.push(below)}`
      : status === undefined && agent === undefined
        ? "tenant || '' = $1"
        : "tenant = $1",
  ];
  if (agent !== undefined) conditions.push(`agent = $${values.push(agent)}`);
  if (status !== undefined) conditions.push(`status = $${values.push(status)}`);
  const order = below === undefined ? "updated_at desc, id desc" : "id + 0 desc";
  const query = `select * from schedule where ${conditions.join(" and ")} order by ${order} limit $2`;
  if (bytesMax === undefined) return { text: query, values };
  const inOrder = below === undefined ? order : "id desc";
  return { text: upToBytes(query, inOrder, `$${values.push(bytesMax)}`), values };
}

async function countSelected(
  db: PostgresDatabase,
  { tenant, status, agent }: ScheduleSelection,
): Promise<number> {
  const [row] = await db.read<{ n: string }>({
    name: "count_selected_schedules",
    text: `select count(*) as n from schedule
            where tenant = $1 and ($2::text is null or status = $2) and ($3::text is null or agent = $3)`,
    values: [tenant, status ?? null, agent ?? null],
  });
  return Number(row?.n ?? 0);
}

async function updateSchedule(
  db: PostgresDatabase,
  params: UpdateScheduleParams,
): Promise<ScheduleRecord | null> {
  const {
    tenant,
    id,
    revision,
    changes,
    pauseReason,
    unlessDue = false,
    maxSchedules = null,
    ofMaker,
  } = params;
  const [row] = await db
    .write<ScheduleRow & { is_full: boolean }>({
      name: "update_schedule",
      text: "select is_full, (saved).* from update_schedule($1, $2, $3, $4, $5, $6, $7, $8, $9)",
      values: [
        tenant,
        id,
        revision,
        JSON.stringify(toColumns(changes)),
        pauseReason === undefined ? null : cleanText(pauseReason),
        unlessDue,
        maxSchedules,
        ofMaker === undefined ? null : JSON.stringify(ofMaker),
      ],
    })
    .catch((error) => {
      throw orBoundExceeded(error);
    });
  if (row === undefined) return null;
  if (row.is_full) throw tooManySchedules(maxSchedules ?? 0);
  db.signal({ kind: "schedules" });
  return toScheduleRecord(row);
}

async function deleteSchedule(
  db: PostgresDatabase,
  { tenant, id, sparesRunning = false, limit }: DeleteScheduleParams,
): Promise<DeletedSchedule | null> {
  const [row] = await db.write<{ cancelled: CancelledJson[]; more: boolean }>({
    name: "delete_schedule",
    text: "select * from delete_schedule($1, $2, $3, $4, $5)",
    values: [tenant, id, sparesRunning, limit ?? null],
  });
  if (row === undefined) return null;
  signalCancelled(db, row.cancelled);
  return { cancelled: row.cancelled.map(toEndedTask), more: row.more };
}

const IS_OF_MAKER = {
  key: "and maker_key = $3",
  agent: "and maker_agent = $3",
  tenant: "and $3::text is not null",
};

async function ofMaker(db: PostgresDatabase, tenant: string, { by, id, max }: MakerLimit): Promise<number[]> {
  const rows = await db.read<{ id: string }>({
    name: `schedules_of_${by}`,
    text: `select id from schedule where tenant = $1 ${IS_OF_MAKER[by]} and status in ('active', 'paused') order by id limit $2`,
    values: [tenant, max, id],
  });
  return rows.map((row) => Number(row.id));
}

async function countSchedules(db: PostgresDatabase, tenant: string): Promise<ScheduleCounts> {
  const [row] = await db.read<{
    active: string;
    paused: string;
    running: string;
    next_fire_at: string | null;
  }>({
    name: "count_schedules",
    text: `select (select count(*) from schedule where tenant = $1 and status = 'active') as active,
                  (select count(*) from schedule where tenant = $1 and status = 'paused') as paused,
                  (select count(*) from run where tenant = $1 and status = 'running') as running,
                  (select next_fire_at from schedule where tenant = $1 and next_fire_at is not null
                    order by next_fire_at + 0 limit 1) as next_fire_at`,
    values: [tenant],
  });
  return {
    active: Number(row?.active ?? 0),
    paused: Number(row?.paused ?? 0),
    running: Number(row?.running ?? 0),
    nextFireAt: row === undefined || row.next_fire_at === null ? null : Number(row.next_fire_at),
  };
}

/** The columns that the owner of a schedule sets, with their types. */
const DEFINITION = {
  name: "text",
  agent: "text",
  message: "text",
  phrase: "text",
  rule: "text",
  kind: "text",
  anchor_at: "bigint",
  conversation_id: "text",
  session_key: "text",
  post_to_session: "boolean",
  delete_after_run: "boolean",
  retry_policy: "text",
  overlap: "text",
  catch_up: "text",
  useful_for_ms: "bigint",
  timeout_ms: "bigint",
  work: "text",
  lane: "text",
  priority: "integer",
  metadata: "text",
  callback_url: "text",
  max_runs: "bigint",
  until_at: "bigint",
  pause_after_failures: "integer",
  status: "text",
} as const;

const DEFINED = Object.keys(DEFINITION).join(", ");
const TYPED = Object.entries(DEFINITION)
  .map(([column, type]) => `${column} ${type}`)
  .join(", ");

function changed([column, type]: readonly [string, string]): string {
  return `${column} = case when p_changes ? '${column}' then (p_changes ->> '${column}')::${type} else s.${column} end`;
}

export const SCHEDULE_FUNCTIONS = readSql(new URL("./schedules.sql", import.meta.url), {
  DEFINED,
  TYPED,
  IS_OF_TENANT: isOf("s", "p_tenant"),
  CHANGED: Object.entries({ ...DEFINITION, provenance: "text" })
    .map(changed)
    .join(",\n         "),
  OPEN_TASKS: openTasksOf("p_id"),
  SCHEDULE_DELETED,
  RELEASED_MAX,
  PREEMPT,
  BOUND_EXCEEDED,
  OLDEST_NAMED,
});
