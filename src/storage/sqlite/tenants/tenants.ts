import { isTerminal, type TaskState, type WaitingState } from "../../../model/task-state.ts";
import { DEFAULT_TENANT } from "../../../model/tenant.ts";
import type {
  CreatedTenant,
  DeletedTenant,
  EndedTask,
  TenantRecord,
  TenantStorage,
  UpdatedTenant,
} from "../../storage.ts";
import type { SqliteDatabase } from "../connection/database.ts";
import { Ledger } from "../counters/ledger.ts";
import { countStored, isCounting, keepStoredBytes } from "../counters/stored-bytes.ts";
import { refreshTurns } from "../log/receivers.ts";
import { endNow, tellOfCancelled } from "../tasks/cancel-tasks.ts";
import { WAITING_COLUMNS, type WaitingTask } from "../tasks/end-waiting-task.ts";
import { preemptTasks } from "../tasks/preempt-tasks.ts";
import { deleteTask, forgetEmptyAgents } from "../tasks/prune.ts";
import { settleMoves } from "../tasks/settle-moves.ts";
import { preemptAfterChange } from "./lanes.ts";
import { followSecondTenant } from "./tenant-shares.ts";
import { listWebhookSecrets, rotateWebhookSecret } from "./webhook-secrets.ts";

export function sqliteTenants(db: SqliteDatabase): TenantStorage {
  return {
    create: (params) =>
      written(db, (now): CreatedTenant => {
        const { id, name, limits } = params;
        if (find(db, id) !== undefined) return { taken: "id" };
        if (isNameTaken(db, id, name)) return { taken: "name" };
        db.prepare(
          `insert into tenant (id, name, max_queued, max_inflight, max_schedules, max_sessions, max_streams,
                               max_agents, max_stored_bytes, created_at, updated_at)
           values (@id, @name, @maxQueued, @maxInflight, @maxSchedules, @maxSessions, @maxStreams,
                   @maxAgents, @maxStoredBytes, @now, @now)`,
        ).run({ id, name, ...limits, now });
        keepStoredBytes(db, id, limits.maxStoredBytes !== null);
        return { taken: null, tenant: changed(db, id, now) };
      }),
    get: ({ id }) =>
      db.read(() => {
        const row = find(db, id);
        return row === undefined ? null : toRecord(row);
      }),
    list: () => db.read(() => db.prepare<TenantRow>(`${SELECT_TENANTS} order by t.id`).all().map(toRecord)),
    update: ({ id, name, limits }) =>
      written(db, (now): UpdatedTenant => {
        const row = find(db, id);
        if (row === undefined || row.deleting === 1) return { found: false };
        if (name !== undefined && isNameTaken(db, id, name)) return { found: true, taken: "name" };
        const before = toRecord(row);
        db.prepare(
          `update tenant set name = @name, max_queued = @maxQueued, max_inflight = @maxInflight,
                             max_schedules = @maxSchedules, max_sessions = @maxSessions, max_streams = @maxStreams, max_agents = @maxAgents,
                             max_stored_bytes = @maxStoredBytes, updated_at = @now
            where id = @id`,
        ).run({ ...before.limits, ...limits, id, name: name ?? before.name, now });
        if (limits?.maxStoredBytes !== undefined) keepStoredBytes(db, id, limits.maxStoredBytes !== null);
        return { found: true, taken: null, tenant: changed(db, id, now) };
      }),
    setDisabled: ({ id, disabled }) =>
      written(db, (now) => ((find(db, id)?.deleting ?? 1) === 1 ? null : setDisabled(db, id, disabled, now))),
    async delete({ id, limit }) {
      const deleted = db.erase((now): DeletedTenant => {
        if (find(db, id) === undefined) return { found: false };
        if (id === DEFAULT_TENANT) return { found: true, was: "default" };
        setDisabled(db, id, true, now);
        db.prepare("update tenant set deleting = 1 where id = ?").run(id);
        db.prepare("delete from api_key where tenant = ?").run(id);
        db.signal({ kind: "keys" });
        const more = deleteSlice(db, id, limit, now);
        if (!more) forget(db, id);
        return { found: true, was: null, more };
      });
      if (deleted.found && deleted.was === null && !deleted.more) db.emptyLog();
      await db.durable();
      return deleted;
    },
    countStored: async ({ limit }) =>
      isCounting(db) ? written(db, () => countStored(db, limit)) : { more: false },
    rotateWebhookSecret: (params) =>
      written(db, (now) =>
        find(db, params.id) === undefined ? { found: false } : rotateWebhookSecret(db, params, now),
      ),
    webhookSecrets: () => db.read(() => listWebhookSecrets(db)),
  };
}

async function written<Answer>(db: SqliteDatabase, work: (now: number) => Answer): Promise<Answer> {
  const answer = db.write(work);
  await db.durable();
  return answer;
}

function setDisabled(db: SqliteDatabase, id: string, disabled: boolean, now: number): TenantRecord {
  if (find(db, id)?.disabled !== (disabled ? 1 : 0)) exempt(db, id, disabled);
  db.prepare("update tenant set disabled = ?, updated_at = ? where id = ?").run(disabled ? 1 : 0, now, id);
  return changed(db, id, now);
}

/** Admission does not count the waiting tasks of a disabled tenant. */
function exempt(db: SqliteDatabase, tenant: string, disabled: boolean): void {
  db.prepare(
    `update lane set exempt = exempt + ? * t.counted
       from (select lane, waiting - exempt as counted from tenant_line where tenant = ?) t where t.lane = lane.name`,
  ).run(disabled ? 1 : -1, tenant);
}

/**
 * Applies new limits of a tenant: copies them to `tenant_line`, where claims read them, and checks again which tasks can start.
 */
function changed(db: SqliteDatabase, id: string, now: number): TenantRecord {
  const row = find(db, id);
  if (row === undefined) throw new Error(`tenant ${id} is gone`);
  // Not startable for now: the ledger sets this below, unless the tenant is disabled.
  db.prepare(
    "update tenant_line set max_queued = ?, max_inflight = ?, disabled = ?, startable = 0 where tenant = ?",
  ).run(row.max_queued, row.max_inflight, row.disabled, id);
  const sharesChanged = followSecondTenant(db);
  db.lines.clear();
  const ledger = new Ledger(db);
  const lines = sharesChanged ? ledger.tenants.adoptAll() : ledger.tenants.ofTenant(id);
  ledger.tenants.save({ limitsChanged: true });
  db.lines.clear();
  const lanes = sharesChanged ? [...ledger.allLanes().keys()] : lines.map(({ lane }) => lane);
  preemptAfterChange(db, lanes, now);
  refreshTurns(db, id, now);
  db.signal({ kind: "tenants" });
  db.signal({ kind: "work" });
  db.signal({ kind: "deliveries" });
  return toRecord(row);
}

/** Deletes up to `limit` rows of a tenant. Returns whether there may be more. */
function deleteSlice(db: SqliteDatabase, tenant: string, limit: number, now: number): boolean {
  if (deleteTasks(db, tenant, limit, now) === limit) return true;
  const owned = [
    // Readers take a number without an entry as a sign of a restored database, so the number, the type and the time stay.
    `update event set tenant = '', task_seqs = '[]', data = null
      where last_seq in (select last_seq from event where tenant = ? limit +?)`,
    "delete from session where id in (select id from session where tenant = ? limit +?)",
    "delete from schedule where id in (select id from schedule where tenant = ? limit +?)",
    "delete from run where id in (select id from run where tenant = ? limit +?)",
    "delete from notification where seq in (select seq from notification where tenant = ? limit +?)",
    "delete from bulk where id in (select id from bulk where tenant = ? limit +?)",
    `delete from rollup where (tenant, kind, step, at, key) in
       (select tenant, kind, step, at, key from rollup where tenant = ? limit +?)`,
    `update audit_entry set subject = null, subject_salt = null where seq in (
       select seq from audit_entry where tenant = ? and subject_digest is not null and subject is not null limit +?)`,
    `delete from agent where (tenant, agent) in (select tenant, agent from agent where tenant = ? limit +?)`,
    `delete from receiver where (tenant, host) in (select tenant, host from receiver where tenant = ? limit +?)`,
  ];
  return owned.some((sql) => db.prepare(sql).run(tenant, limit).changes === limit);
}

/** Cancels open tasks first, so that all counters stay correct. */
function deleteTasks(db: SqliteDatabase, tenant: string, limit: number, now: number): number {
  const ledger = new Ledger(db);
  const find = db.prepare<Omit<WaitingTask, "resting_state"> & { id: string; resting_state: TaskState }>(
    `select t.id, ${WAITING_COLUMNS} from task t where t.seq = ?`,
  );
  const seqs = tasksOf(db, tenant, limit);
  const cancelled: EndedTask[] = [];
  for (const seq of seqs) {
    const task = find.get(seq);
    if (task === undefined || isTerminal(task.resting_state)) continue;
    const open = { ...task, resting_state: task.resting_state as WaitingState };
    cancelled.push(endNow(db, ledger, open, { error: "tenant deleted", now }));
  }
  settleMoves(db, ledger, now);
  preemptTasks(db, ledger, now);
  for (const seq of seqs) deleteTask(db, ledger, seq);
  ledger.save();
  forgetEmptyAgents(db, ledger);
  tellOfCancelled(db, cancelled);
  return seqs.length;
}

/** Some tasks of a tenant: first those in `task_of_line`, then the newest, which are not in it yet. */
function tasksOf(db: SqliteDatabase, tenant: string, limit: number): number[] {
  const rows = db
    .prepare<{ seq: number }>(
      `select x.task_seq as seq from line n join task_of_line x on x.line = n.id where n.tenant = ? limit +?`,
    )
    .all(tenant, limit);
  const newest = db
    .prepare<{ seq: number }>("select seq from task where seq > ? and tenant = ? order by seq limit +?")
    .all(db.enteredUpTo, tenant, limit - rows.length);
  return [...rows, ...newest].map(({ seq }) => seq);
}

/** Deletes a tenant that owns nothing any more. */
function forget(db: SqliteDatabase, id: string): void {
  for (const table of ["line", "tenant_line", "tally", "delivery_turn", "agent_change", "webhook_secret"]) {
    db.prepare(`delete from ${table} where tenant = ?`).run(id);
  }
  // One entry without a name, instead of the names of its agents: nodes drop all agents of the tenant.
  db.prepare("insert into agent_change (tenant, agent) values (?, '')").run(id);
  db.prepare("delete from tenant where id = ?").run(id);
  keepStoredBytes(db, id, false);
  db.lines.clear();
  db.signal({ kind: "tenants" });
  db.signal({ kind: "agents" });
}

interface TenantRow {
  readonly id: string;
  readonly name: string;
  readonly disabled: 0 | 1;
  readonly deleting: 0 | 1;
  readonly max_queued: number | null;
  readonly max_inflight: number | null;
  readonly max_schedules: number | null;
  readonly max_sessions: number | null;
  readonly max_streams: number | null;
  readonly max_agents: number | null;
  readonly max_stored_bytes: number | null;
  readonly stored_bytes: number | null;
  readonly created_at: number;
  readonly updated_at: number;
}

const SELECT_TENANTS = `
  select t.*, s.bytes as stored_bytes
    from tenant t left join stored_bytes s on s.tenant = t.id and s.is_recount = 0`;

function find(db: SqliteDatabase, id: string): TenantRow | undefined {
  return db.prepare<TenantRow>(`${SELECT_TENANTS} where t.id = ?`).get(id);
}

function isNameTaken(db: SqliteDatabase, id: string, name: string): boolean {
  return db.prepare("select 1 from tenant where name = ? and id <> ?").get(name, id) !== undefined;
}

function toRecord(row: TenantRow): TenantRecord {
  return {
    id: row.id,
    name: row.name,
    disabled: row.disabled === 1,
    deleting: row.deleting === 1,
    limits: {
      maxQueued: row.max_queued,
      maxInflight: row.max_inflight,
      maxSchedules: row.max_schedules,
      maxSessions: row.max_sessions,
      maxStreams: row.max_streams,
      maxAgents: row.max_agents,
      maxStoredBytes: row.max_stored_bytes,
    },
    storedBytes: row.stored_bytes,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
  };
}
