import {
  type AttemptEnd,
  NOT_POLLING_MS,
  TENANT_WORKERS_MAX,
  TENANT_WORKERS_MIN,
  WORKERS_MAX,
  type WorkerState,
} from "../../../model/worker.ts";
import { ALONE_AFTER_LOSSES } from "../../alone-queue.ts";
import {
  AGENTS_SEEN_MAX,
  ALL_AGENTS,
  type AttemptUsage,
  CLAIM_KEPT_MS,
  LOST_WORKERS_MAX,
  type OverdueAttempt,
  SILENT_FOR,
  type TaskLabels,
  WORKER_BACK,
  WORKER_KEPT_MS,
  type WorkerRecord,
  type WorkerStorage,
} from "../../storage.ts";
import { isOpenToWorkers } from "../connection/abilities.ts";
import type { PostgresDatabase } from "../connection/database.ts";
import { readSql } from "../connection/sql-file.ts";
import { PREEMPT } from "../tasks/preempt-tasks.ts";
import { RELEASED_MAX } from "../tasks/settle-moves.ts";
import { TASK_COLUMNS, TASK_TABLES, type TaskRow, toTaskRecords } from "../tasks/task-row.ts";
import { exchangeForWorkers } from "./exchange.ts";
import { preemptForWorkers } from "./preempt-for-workers.ts";

export function postgresWorkers(db: PostgresDatabase): WorkerStorage {
  return {
    async register(worker) {
      const [row] = await db.write<{
        id: string;
        is_new: boolean;
        full_of: "installation" | "tenant" | null;
        served_agent: string | null;
      }>({
        name: "register_worker",
        text: "select * from register_worker($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
        values: [
          worker.id,
          worker.tenant,
          worker.instance,
          worker.key,
          worker.name,
          worker.agents,
          worker.slots,
          JSON.stringify(worker.labels),
          worker.version,
          worker.runtime,
          worker.leaseMs,
          worker.heartbeatMs,
        ],
      });
      if (row === undefined) throw new Error("register_worker returned nothing");
      if (row.served_agent !== null) return { served: row.served_agent };
      if (row.full_of !== null) return { full: row.full_of };
      db.signal({ kind: "work" });
      if (!row.is_new) db.signal({ kind: "workers", ids: [row.id] });
      return { id: row.id, isNew: row.is_new };
    },
    async get({ tenant, id }) {
      const [row] = await db.write<WorkerRow>({
        name: "get_worker",
        text: `${SELECT_WORKERS} where w.tenant = $2 and w.id = $3`,
        values: [tenant, id],
      });
      return row === undefined ? null : toRecord(row);
    },
    async list({ tenant, limit = null, after, agents }) {
      // A name for each form, since a prepared query has one plan.
      const from = after === undefined ? "" : "and (w.name, w.id) > ($4, $5)";
      const agentsAt = after === undefined ? 4 : 6;
      const rows = await db.write<WorkerRow>({
        name: `list_workers${after === undefined ? "" : "_after"}${agents === undefined ? "" : "_of_agents"}`,
        text: `${SELECT_WORKERS} where w.tenant = $2 ${from}
                 ${agents === undefined ? "" : `and w.id in (select worker from worker_agent where tenant = $2 and agent = any ($${agentsAt}))`}
                order by w.name, w.id limit $3`,
        values: [
          tenant,
          limit,
          ...(after === undefined ? [] : [after.name, after.id]),
          ...(agents === undefined ? [] : [agents]),
        ],
      });
      return rows.map(toRecord);
    },
    async count({ tenant }) {
      const rows = await db.write<{ state: WorkerState; count: string; slots: string; held: string }>({
        name: "count_workers",
        text: COUNT_WORKERS,
        values: [tenant],
      });
      return rows.map(({ state, count, slots, held }) => {
        return { state, count: Number(count), slots: Number(slots), held: Number(held) };
      });
    },
    async renew({ signs }) {
      const rows = await db.writeFirst<{ id: string; lost: boolean }>({
        name: "renew_workers",
        text: "select * from renew_workers($1, $2, $3)",
        values: [signs.map(({ worker }) => worker), signs.map(({ polls }) => polls)],
      });
      const known = new Set(rows.map(({ id }) => id));
      for (const { id } of rows.filter(({ lost }) => lost)) {
        const [row] = await db.write<{ live: boolean }>({
          name: "revive_worker",
          text: "select revive_worker($1, $2) as live",
          values: [id],
        });
        if (row?.live === true) db.signal({ kind: "work" });
        else known.delete(id);
      }
      return { unknown: signs.map(({ worker }) => worker).filter((id) => !known.has(id)) };
    },
    async drain({ tenant, id }) {
      const rows = await db.read({
        name: "drain_worker",
        text: "update worker set draining = true where tenant = $1 and id = $2 returning id",
        values: [tenant, id],
      });
      if (rows.length === 0) return false;
      db.signal({ kind: "workers", ids: [id] });
      return true;
    },
    async watch() {
      const rows = await db.read<{ workers: readonly WatchedRow[]; any_worker: boolean; due: string | null }>(
        {
          name: "watch_workers",
          text: `select coalesce((select json_agg(json_build_object(
                        'worker', w.id, 'tenant', w.tenant, 'name', w.name, 'beat', w.beat, 'lost', w.lost, 'leaseMs', w.lease_ms,
                        'slots', w.slots, 'draining', w.draining, 'registeredAt', w.registered_at, 'polledAt', w.polled_at,
                        'held', coalesce(h.held, 0)) order by w.id)
                         from worker w
                         left join (select node, count(*) as held from lease group by node) h on h.node = w.id
                        where not w.lost or h.held > 0), '[]') as workers,
                      exists (select 1 from worker) as any_worker,
                      (select min(${DUE_AT}) from worker_attempt a
                         join lease l on l.task_seq = a.task_seq and l.token = a.token) as due`,
          values: [],
        },
      );
      const due = rows[0]?.due ?? null;
      return {
        workers: rows[0]?.workers ?? [],
        any: rows[0]?.any_worker === true,
        nextDueAt: due === null ? null : Number(due),
      };
    },
    async markLost({ worker, beat }) {
      const [row] = await db.write<{ agents: string[] | null }>({
        name: "mark_worker_lost",
        text: "select mark_worker_lost($1, $2, $3) as agents",
        values: [worker, beat],
      });
      if (row?.agents == null) return null;
      db.signal({ kind: "work" });
      return row.agents;
    },
    async remove({ tenant, id }) {
      const rows = await db.write({
        name: "remove_worker",
        text: "select 1 from remove_worker($1, $2, $3) as removed where removed",
        values: [tenant, id],
      });
      if (rows.length === 0) return false;
      db.signal({ kind: "workers", ids: [id] });
      return true;
    },
    exchange: (params) => exchangeForWorkers(db, params),
    async attempts(params) {
      const byHash = "hashes" in params;
      const [column, type] = byHash ? ["hash", "text"] : ["token", "bigint"];
      const rows = await db.read<AttemptRow>({
        name: `worker_attempts_by_${column}`,
        text: `select a.*, l.token is not null as held
                 from unnest($1::${type}[]) with ordinality u(name, n)
                 join worker_attempt a on a.${column} = u.name
                 left join lease l on l.task_seq = a.task_seq and l.token = a.token order by u.n`,
        values: [byHash ? params.hashes : params.tokens],
      });
      return rows.map((row) => ({
        hash: row.hash,
        worker: row.worker,
        tenant: row.tenant,
        taskId: row.task_id,
        seq: Number(row.task_seq),
        token: Number(row.token),
        number: row.number,
        held: row.held,
        recorded: row.recorded,
        usage: toUsage(row),
      }));
    },
    async ends({ attempts }) {
      if (attempts.length === 0) return [];
      // Of a task that has ended, the last attempt is stored with it.
      const rows = await db.read<AttemptEnd>({
        name: "worker_attempt_ends",
        text: `select e.outcome, e.error from unnest($1::bigint[], $2::integer[]) with ordinality u(seq, number, n)
                 left join lateral (
                   select outcome, error from attempt where task_seq = u.seq and number = u.number
                    union all
                   select last_outcome, error from task
                    where seq = u.seq and executions = u.number and last_outcome is not null
                   limit 1) e on true order by u.n`,
        values: [attempts.map(({ seq }) => seq), attempts.map(({ number }) => number)],
      });
      return rows.map(({ outcome, error }) => (outcome === null ? null : { outcome, error }));
    },
    async name({ worker, attempts, all }) {
      const usages = attempts.flatMap(({ hash, usage }) => (usage === undefined ? [] : { hash, ...usage }));
      const rows = await db.write<{ seq: string | null; token: string }>({
        name: "name_attempts",
        text: "select * from name_attempts($1, $2, $3, $4, $5)",
        values: [
          worker,
          attempts.map(({ hash }) => hash),
          usages.length === 0 ? null : JSON.stringify(usages),
          all,
        ],
      });
      if (rows.some(({ seq }) => seq === null)) db.signal({ kind: "events" });
      return {
        dropped: rows.flatMap(({ seq, token }) =>
          seq === null ? [] : { seq: Number(seq), token: Number(token) },
        ),
      };
    },
    async takeBack({ worker, attempts, limit, counted, maxLost, recorded = false, error }) {
      const tokens = attempts?.map(({ token }) => token) ?? null;
      const rows = await db.write<TakenRow>({
        name: "take_back",
        text: "select * from take_back($1, $2, $3, $4, $5, $6, $7, $8)",
        values: [worker, tokens, limit, counted, maxLost ?? null, error, recorded],
      });
      if (rows.length > 0) {
        db.signal({ kind: "events" });
        db.signal({ kind: "work" });
        db.signal({ kind: "due" });
        // The next attempt of a task that was not delivered has the same number: a signal could end that one.
        const ended = rows.map(({ token }) => Number(token));
        if (maxLost !== undefined) db.signal({ kind: "fenced", tokens: ended, reason: "cancelled" });
      }
      const labelsOf = (wanted: "queued" | "failed") =>
        rows
          .filter(({ state }) => state === wanted)
          .map(({ id, tenant, agent, lane }) => ({ id, tenant, agent, lane }));
      return { requeued: labelsOf("queued"), failed: labelsOf("failed") };
    },
    async overdue({ limit }) {
      const rows = await db.write<OverdueRow>({
        name: "overdue_attempts",
        text: `select ${TASK_COLUMNS}, a.worker, a.token as attempt_token,
                      case when a.deadline <= ${NOW} then 'deadline' when a.times_out_at <= ${NOW} then 'timeout' else 'unnamed' end as reason
                 from worker_attempt a cross join ${TASK_TABLES}
                where t.seq = a.task_seq and l.token = a.token and ${DUE_AT} <= ${NOW} order by ${DUE_AT}, t.seq limit $2`,
        values: [limit],
      });
      const tasks = await toTaskRecords(db, rows);
      return tasks.flatMap((task, index) => {
        const row = rows[index];
        if (row === undefined) return [];
        const { worker, attempt_token, reason } = row;
        return { worker, reason, seq: task.seq, token: Number(attempt_token), task };
      });
    },
    preempt: (params) => preemptForWorkers(db, params),
    async prune() {
      // The function takes the write lock.
      await db.write({
        name: "prune_workers",
        text: `select prune_workers($1, $2, $3, $4)
                where exists (select 1 from worker_attempt) or exists (select 1 from worker_minute)
                   or exists (select 1 from worker where lost)`,
        values: [CLAIM_KEPT_MS, WORKER_KEPT_MS, LOST_WORKERS_MAX],
      });
    },
  };
}

type WatchedRow = Awaited<ReturnType<WorkerStorage["watch"]>>["workers"][number];

const NOW = "coalesce($1::bigint, floor(extract(epoch from clock_timestamp()) * 1000)::bigint)";

/** When an attempt `a` is overdue; null: never. */
const DUE_AT = "least(a.unnamed_until, a.times_out_at, a.deadline)";

const SELECT_WORKERS = `
  select w.*, (select count(*) from lease l where l.node = w.id) as held,
         (select coalesce(sum(m.done), 0) from worker_minute m where m.worker = w.id and m.minute > ${NOW} / 60000 - 10) as done,
         (select coalesce(sum(m.failed), 0) from worker_minute m where m.worker = w.id and m.minute > ${NOW} / 60000 - 10) as failed
    from worker w`;

/** As `workerState`. */
const COUNT_WORKERS = `
  select case when lost then 'lost' when draining then 'draining'
              when held < slots and greatest(registered_at, polled_at) < ${NOW} - ${NOT_POLLING_MS} then 'not_polling'
              when held > 0 then 'busy' else 'idle' end as state,
         count(*) as count, sum(slots) as slots, sum(held) as held
    from (select w.*, (select count(*) from lease l where l.node = w.id) as held from worker w where w.tenant = $2) w
   group by 1 order by 1`;

interface WorkerRow {
  readonly id: string;
  readonly tenant: string;
  readonly instance: string | null;
  readonly key: string | null;
  readonly name: string;
  readonly agents: string[];
  readonly slots: number;
  readonly labels: Record<string, string>;
  readonly version: string | null;
  readonly runtime: string | null;
  readonly lease_ms: number;
  readonly heartbeat_ms: number;
  readonly draining: boolean;
  readonly lost: boolean;
  readonly registered_at: string;
  readonly seen_at: string;
  readonly polled_at: string | null;
  readonly held: string;
  readonly done: string;
  readonly failed: string;
}

function toRecord(row: WorkerRow): WorkerRecord {
  const { id, tenant, instance, key, name, agents, slots, labels, version, runtime, draining, lost } = row;
  return {
    ...{ id, tenant, instance, key, name, agents, slots, labels, version, runtime, draining, lost },
    leaseMs: row.lease_ms,
    heartbeatMs: row.heartbeat_ms,
    registeredAt: Number(row.registered_at),
    seenAt: Number(row.seen_at),
    polledAt: row.polled_at === null ? null : Number(row.polled_at),
    held: Number(row.held),
    done: Number(row.done),
    failed: Number(row.failed),
  };
}

interface AttemptRow {
  readonly hash: string;
  readonly worker: string;
  readonly tenant: string;
  readonly task_id: string;
  readonly task_seq: string;
  readonly token: string;
  readonly number: number;
  readonly held: boolean;
  readonly recorded: boolean;
  readonly input_tokens: string | null;
  readonly output_tokens: string | null;
  readonly context_tokens: string | null;
  readonly context_window: string | null;
}

function toUsage(row: AttemptRow): AttemptUsage | null {
  if (row.input_tokens === null || row.output_tokens === null) return null;
  return {
    inputTokens: Number(row.input_tokens),
    outputTokens: Number(row.output_tokens),
    ...(row.context_tokens === null ? {} : { contextTokens: Number(row.context_tokens) }),
    ...(row.context_window === null ? {} : { contextWindow: Number(row.context_window) }),
  };
}

interface TakenRow extends TaskLabels {
  readonly id: string;
  readonly state: "queued" | "failed";
  readonly token: string;
}

interface OverdueRow extends TaskRow {
  readonly worker: string;
  readonly attempt_token: string;
  readonly reason: OverdueAttempt["reason"];
}

export const WORKER_FUNCTIONS = readSql(new URL("./workers.sql", import.meta.url), {
  ALL_AGENTS,
  ALONE_AFTER_LOSSES,
  RELEASED_MAX,
  PREEMPT,
  WORKER_BACK,
  SILENT_FOR,
  IS_OPEN_TO_WORKERS: isOpenToWorkers("n"),
  WORKERS_MAX,
  TENANT_WORKERS_MAX,
  TENANT_WORKERS_MIN,
  AGENTS_SEEN_MAX,
});
