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
import type { Transaction } from "../connection/transaction.ts";
import { Ledger } from "../counters/ledger.ts";
import { countStored, isCounting, keepStoredBytes } from "../counters/steps/count-stored.ts";
import { refreshTurns } from "../log/steps/receivers.ts";
import { endNow, signalCancelled } from "../tasks/steps/cancel-all.ts";
import { deleteTask, forgetEmptyAgents } from "../tasks/steps/delete-task.ts";
import { WAITING_COLUMNS, type WaitingTask } from "../tasks/steps/end-waiting-task.ts";
import { followSecondTenant, preemptAfterChange } from "./steps/refresh-limits.ts";
import { listWebhookSecrets, rotateWebhookSecret } from "./webhook-secrets.ts";

export function sqliteTenants(db: SqliteDatabase): TenantStorage {
  return {
    create: (params) =>
      db.transactDurably((tx): CreatedTenant => {
        const { id, name, limits } = params;
        if (find(db, id) !== undefined) return { taken: "id" };
        if (isNameTaken(db, id, name)) return { taken: "name" };
        tx.prepare(
          `insert into tenant (id, name, max_queued, max_inflight, max_schedules, max_sessions, max_streams,
                               max_agents, max_stored_bytes, created_at, updated_at)
           values (@id, @name, @maxQueued, @maxInflight, @maxSchedules, @maxSessions, @maxStreams,
                   @maxAgents, @maxStoredBytes, @now, @now)`,
        ).run({ id, name, ...limits, now: tx.now });
        keepStoredBytes(tx, id, limits.maxStoredBytes !== null);
        return { taken: null, tenant: changed(tx, id) };
      }),
    get: ({ id }) =>
      db.read(() => {
        const row = find(db, id);
        return row === undefined ? null : toRecord(row);
      }),
    list: () => db.read(() => db.prepare<TenantRow>(`${SELECT_TENANTS} order by t.id`).all().map(toRecord)),
    update: ({ id, name, limits }) =>
      db.transactDurably((tx): UpdatedTenant => {
        const row = find(db, id);
        if (row === undefined || row.deleting === 1) return { found: false };
        if (name !== undefined && isNameTaken(db, id, name)) return { found: true, taken: "name" };
        const before = toRecord(row);
        tx.prepare(
          `update tenant set name = @name, max_queued = @maxQueued, max_inflight = @maxInflight,
                             max_schedules = @maxSchedules, max_sessions = @maxSessions, max_streams = @maxStreams, max_agents = @maxAgents,
                             max_stored_bytes = @maxStoredBytes, updated_at = @now
            where id = @id`,
        ).run({ ...before.limits, ...limits, id, name: name ?? before.name, now: tx.now });
        if (limits?.maxStoredBytes !== undefined) keepStoredBytes(tx, id, limits.maxStoredBytes !== null);
        return { found: true, taken: null, tenant: changed(tx, id) };
      }),
    setDisabled: ({ id, disabled }) =>
      db.transactDurably((tx) =>
        (find(db, id)?.deleting ?? 1) === 1 ? null : setDisabled(tx, id, disabled),
      ),
    async delete({ id, limit }) {
      const deleted = db.erase((tx): DeletedTenant => {
        if (find(db, id) === undefined) return { found: false };
        if (id === DEFAULT_TENANT) return { found: true, was: "default" };
        setDisabled(tx, id, true);
        tx.prepare("update tenant set deleting = 1 where id = ?").run(id);
        tx.prepare("delete from api_key where tenant = ?").run(id);
        tx.signal("keys");
        const more = deleteSlice(tx, id, limit);
        if (!more) forget(tx, id);
        return { found: true, was: null, more };
      });
      if (deleted.found && deleted.was === null && !deleted.more) db.emptyLog();
      await db.durable();
      return deleted;
    },
    countStored: async ({ limit }) =>
      isCounting(db) ? db.transactDurably((tx) => countStored(tx, limit)) : { more: false },
    rotateWebhookSecret: (params) => rotateWebhookSecret(db, params),
    webhookSecrets: () => db.read(() => listWebhookSecrets(db)),
  };
}

function setDisabled(tx: Transaction, id: string, disabled: boolean): TenantRecord {
  if (find(tx.db, id)?.disabled !== (disabled ? 1 : 0)) exempt(tx, id, disabled);
  tx.prepare("update tenant set disabled = ?, updated_at = ? where id = ?").run(disabled ? 1 : 0, tx.now, id);
  return changed(tx, id);
}

/** Admission does not count the waiting tasks of a disabled tenant. */
function exempt(tx: Transaction, tenant: string, disabled: boolean): void {
  tx.prepare(
    `update lane set exempt = exempt + ? * t.counted
       from (select lane, waiting - exempt as counted from tenant_line where tenant = ?) t where t.lane = lane.name`,
  ).run(disabled ? 1 : -1, tenant);
}

/**
 * Applies new limits of a tenant: copies them to `tenant_line`, where claims read them, and checks again which tasks can start.
 */
function changed(tx: Transaction, id: string): TenantRecord {
  const row = find(tx.db, id);
  if (row === undefined) throw new Error(`tenant ${id} is gone`);
  // Not startable for now: the ledger sets this below, unless the tenant is disabled.
  tx.prepare(
    "update tenant_line set max_queued = ?, max_inflight = ?, disabled = ?, startable = 0 where tenant = ?",
  ).run(row.max_queued, row.max_inflight, row.disabled, id);
  const sharesChanged = followSecondTenant(tx);
  tx.db.agentQueues.clear();
  const ledger = new Ledger(tx.db);
  const tenantQueues = sharesChanged ? ledger.tenants.adoptAll() : ledger.tenants.ofTenant(id);
  ledger.tenants.save({ limitsChanged: true });
  tx.db.agentQueues.clear();
  const lanes = sharesChanged ? [...ledger.allLanes().keys()] : tenantQueues.map(({ lane }) => lane);
  preemptAfterChange(tx, lanes);
  refreshTurns(tx, id);
  tx.signal("tenants", "work", "deliveries");
  return toRecord(row);
}

/** Deletes up to `limit` rows of a tenant. Returns whether there may be more. */
function deleteSlice(tx: Transaction, tenant: string, limit: number): boolean {
  if (deleteTasks(tx, tenant, limit) === limit) return true;
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
    "delete from worker_attempt where hash in (select hash from worker_attempt where tenant = ? limit +?)",
    `delete from bounded_task where (tenant, owner, task_seq) in
       (select tenant, owner, task_seq from bounded_task where tenant = ? limit +?)`,
    `delete from bounded_minute where (tenant, owner, minute) in
       (select tenant, owner, minute from bounded_minute where tenant = ? limit +?)`,
    `update audit_entry set provenance = json_remove(json_set(provenance, '$.createdBy.agentId', null), '$.createdBy.client')
      where seq in (
        select seq from audit_entry
         where tenant = ? and (provenance ->> '$.createdBy.agentId' is not null or provenance ->> '$.createdBy.client' is not null)
         limit +?)`,
  ];
  return owned.some((sql) => tx.prepare(sql).run(tenant, limit).changes === limit);
}

/** Cancels open tasks first, so that all counters stay correct. */
function deleteTasks(tx: Transaction, tenant: string, limit: number): number {
  const find = tx.prepare<Omit<WaitingTask, "resting_state"> & { id: string; resting_state: TaskState }>(
    `select t.id, ${WAITING_COLUMNS} from task t where t.seq = ?`,
  );
  const seqs = tasksOf(tx, tenant, limit);
  const cancelled: EndedTask[] = [];
  for (const seq of seqs) {
    const task = find.get(seq);
    if (task === undefined || isTerminal(task.resting_state)) continue;
    const open = { ...task, resting_state: task.resting_state as WaitingState };
    cancelled.push(endNow(tx, open, "tenant deleted"));
  }
  tx.preempt();
  for (const seq of seqs) deleteTask(tx, seq);
  forgetEmptyAgents(tx);
  signalCancelled(tx, cancelled);
  return seqs.length;
}

/** Some tasks of a tenant: first those in `task_of_line`, then the newest, which are not in it yet. */
function tasksOf(tx: Transaction, tenant: string, limit: number): number[] {
  const rows = tx
    .prepare<{ seq: number }>(
      `select x.task_seq as seq from line n join task_of_line x on x.line = n.id where n.tenant = ? limit +?`,
    )
    .all(tenant, limit);
  const newest = tx
    .prepare<{ seq: number }>("select seq from task where seq > ? and tenant = ? order by seq limit +?")
    .all(tx.db.enteredUpTo, tenant, limit - rows.length);
  return [...rows, ...newest].map(({ seq }) => seq);
}

/** Tables whose rows of a tenant are few, or empty by then. */
const OWNED_TABLES = [
  ...["line", "tenant_line", "tally", "delivery_turn", "agent_change", "webhook_secret"],
  ...["worker", "worker_agent", "worker_agent_seen"],
];

/** Deletes a tenant that owns nothing any more. */
function forget(tx: Transaction, id: string): void {
  tx.prepare("delete from worker_minute where worker in (select id from worker where tenant = ?)").run(id);
  for (const table of OWNED_TABLES) tx.prepare(`delete from ${table} where tenant = ?`).run(id);
  // One entry without a name, instead of the names of its agents: nodes drop all agents of the tenant.
  tx.prepare("insert into agent_change (tenant, agent) values (?, '')").run(id);
  tx.prepare("delete from tenant where id = ?").run(id);
  keepStoredBytes(tx, id, false);
  tx.db.agentQueues.clear();
  // Its agents and workers count as serving no longer.
  tx.db.abilities.clear();
  tx.signal("tenants", "agents");
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
