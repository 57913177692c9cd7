import type { Storage } from "../storage.ts";
import { failUnserved } from "./abilities.ts";
import { postgresAgents } from "./agents.ts";
import { postgresAudit } from "./audit.ts";
import { batchTasks, getBatch } from "./batches.ts";
import { postgresBulks } from "./bulks.ts";
import { cancelTasks } from "./cancel-tasks.ts";
import { PostgresDatabase, type PostgresOptions } from "./database.ts";
import { postgresDeliveries } from "./deliveries.ts";
import { dependencyResults } from "./dependencies.ts";
import { expireTasks } from "./expire-tasks.ts";
import { claimAlone, finishAndClaim, isAloneWaiting } from "./finish-and-claim.ts";
import { insertTasks, keptKeys } from "./insert-tasks.ts";
import { postgresKeys } from "./keys.ts";
import { postgresLanes } from "./lanes.ts";
import { listTaskRows, listTasks } from "./list-tasks.ts";
import { postgresNodes } from "./nodes.ts";
import { pageEvents } from "./page-events.ts";
import { nextDueAt, promoteDue } from "./promote-due.ts";
import { prune } from "./prune.ts";
import { eventMark, eventRange, lastEventUntil, readEvents } from "./read-events.ts";
import { postgresNotifications } from "./read-notifications.ts";
import { readSituation } from "./read-situation.ts";
import { countTasks, getTask, queueDepth } from "./read-tasks.ts";
import { readWaiting } from "./read-waiting.ts";
import { recountOne } from "./recount.ts";
import { recountAll } from "./recount-all.ts";
import { release } from "./release-dependants.ts";
import { rescueTasks } from "./rescue-tasks.ts";
import { retryTask } from "./retry-task.ts";
import { postgresSchedules } from "./schedules.ts";
import { postgresSessions } from "./sessions.ts";
import { postgresTaskLogs } from "./task-logs.ts";
import { postgresTenants } from "./tenants.ts";

/** Opens a PostgreSQL database, which any number of nodes may share. */
export async function openPostgres(options: PostgresOptions): Promise<Storage> {
  const db = await PostgresDatabase.open(options);
  return {
    capabilities: { durable: true, exclusive: false },
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
    nodes: postgresNodes(db),
    logs: postgresTaskLogs(db),
    sessions: postgresSessions(db),
    schedules: postgresSchedules(db),
    notifications: postgresNotifications(db),
    lanes: postgresLanes(db),
    agents: postgresAgents(db),
    deliveries: postgresDeliveries(db),
    tenants: postgresTenants(db),
    keys: postgresKeys(db),
    audit: postgresAudit(db),
    bulks: postgresBulks(db),
    counters: {
      recountOne: (params) => recountOne(db, params),
      recountAll: (params) => recountAll(db, params),
    },
    now: () => db.now(),
    check: () => db.check(),
    subscribe: (listener) => db.subscribe(listener),
    close: () => db.close(),
  };
}
