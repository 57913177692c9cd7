import type { Storage } from "../storage.ts";
import { failUnserved } from "./abilities.ts";
import { sqliteAgents } from "./agents.ts";
import { sqliteAudit } from "./audit.ts";
import { batchTasks, getBatch } from "./batches.ts";
import { sqliteBulks } from "./bulks.ts";
import { cancelTasks } from "./cancel-tasks.ts";
import { SqliteDatabase, type SqliteOptions } from "./database.ts";
import { sqliteDeliveries } from "./deliveries.ts";
import { dependencyResults } from "./dependencies.ts";
import { expireTasks } from "./expire-tasks.ts";
import { claimAlone, finishAndClaim, isAloneWaiting } from "./finish-and-claim.ts";
import { keptKeys } from "./idempotency-keys.ts";
import { insertTasks } from "./insert-tasks.ts";
import { sqliteKeys } from "./keys.ts";
import { sqliteLanes } from "./lanes.ts";
import { listTaskRows, listTasks } from "./list-tasks.ts";
import { sqliteNodes } from "./nodes.ts";
import { sqliteNotifications } from "./notifications.ts";
import { pageEvents } from "./page-events.ts";
import { nextDueAt, promoteDue } from "./promote-due.ts";
import { prune } from "./prune.ts";
import { eventMark, eventRange, lastEventUntil, readEvents } from "./read-events.ts";
import { readSituation } from "./read-situation.ts";
import { countTasks, getTask, queueDepth } from "./read-tasks.ts";
import { readWaiting } from "./read-waiting.ts";
import { recountOne } from "./recount.ts";
import { recountAll } from "./recount-all.ts";
import { release } from "./release-dependants.ts";
import { rescueTasks } from "./rescue-tasks.ts";
import { retryTask } from "./retry-task.ts";
import { sqliteSchedules } from "./schedules.ts";
import { sqliteSessions } from "./sessions.ts";
import { sqliteTaskLogs } from "./task-logs.ts";
import { sqliteTenants } from "./tenants.ts";

/** Opens a database file, or memory, for this process alone. */
export async function openSqlite(options: SqliteOptions): Promise<Storage> {
  const db = new SqliteDatabase(options);
  return {
    capabilities: { durable: db.durableStore, exclusive: true },
    tasks: {
      insert: (params) => insertTasks(db, params),
      keptKeys: (params) => keptKeys(db, params),
      finishAndClaim: (params) => finishAndClaim(db, params),
      get: (params) => getTask(db, params),
      getBatch: (params) => getBatch(db, params),
      batchTasks: (params) => batchTasks(db, params),
      situation: (params) => readSituation(db, params),
      list: (params) => listTasks(db, params),
      listRows: (params) => listTaskRows(db, params),
      counts: (params) => countTasks(db, params),
      queueDepth: (params) => queueDepth(db, params),
      waiting: (params) => readWaiting(db, params),
      cancel: (params) => cancelTasks(db, params),
      retry: (params) => retryTask(db, params),
      promoteDue: (params) => promoteDue(db, params),
      expire: (params) => expireTasks(db, params),
      failUnserved: (params) => failUnserved(db, params),
      nextDueAt: () => nextDueAt(db),
      dependencyResults: (params) => dependencyResults(db, params),
      release: (params) => release(db, params),
      claimAlone: (params) => claimAlone(db, params),
      isAloneWaiting: (params) => isAloneWaiting(db, params),
      rescue: (params) => rescueTasks(db, params),
      prune: (params) => prune(db, params),
    },
    events: {
      read: (params) => readEvents(db, params),
      page: (params) => pageEvents(db, params),
      mark: (params) => eventMark(db, params),
      lastUntil: (params) => lastEventUntil(db, params),
      range: () => eventRange(db),
    },
    logs: sqliteTaskLogs(db),
    sessions: sqliteSessions(db),
    schedules: sqliteSchedules(db),
    notifications: sqliteNotifications(db),
    nodes: sqliteNodes(db),
    lanes: sqliteLanes(db),
    agents: sqliteAgents(db),
    deliveries: sqliteDeliveries(db),
    tenants: sqliteTenants(db),
    keys: sqliteKeys(db),
    audit: sqliteAudit(db),
    bulks: sqliteBulks(db),
    counters: {
      recountOne: (params) => recountOne(db, params),
      recountAll: (params) => recountAll(db, params),
    },
    now: async () => db.now(),
    check: () => db.check(),
    subscribe: (listener) => db.subscribe(listener),
    close: () => db.close(),
  };
}
