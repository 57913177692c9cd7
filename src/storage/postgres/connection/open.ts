import type { Storage } from "../../storage.ts";
import { recountOne } from "../counters/recount.ts";
import { recountAll } from "../counters/recount-all.ts";
import { postgresAudit } from "../log/audit.ts";
import { postgresDeliveries } from "../log/deliveries.ts";
import { postgresNotifications } from "../log/notifications.ts";
import { pageEvents } from "../log/page-events.ts";
import { eventMark, eventRange, lastEventUntil, readEvents } from "../log/read-events.ts";
import { postgresRollups } from "../log/rollups.ts";
import { postgresSchedules } from "../schedules/schedules.ts";
import { postgresSessions } from "../sessions/sessions.ts";
import { batchTasks, getBatch } from "../tasks/batches.ts";
import { postgresBulks } from "../tasks/bulks.ts";
import { cancelTasks } from "../tasks/cancel-tasks.ts";
import { dependencyResults } from "../tasks/dependencies.ts";
import { expireTasks } from "../tasks/expire-tasks.ts";
import { failUnserved } from "../tasks/fail-unserved.ts";
import { claimAlone, finishAndClaim, isAloneWaiting } from "../tasks/finish-and-claim.ts";
import { keptKeys } from "../tasks/idempotency-keys.ts";
import { insertTasks } from "../tasks/insert-tasks.ts";
import { listTaskRows, listTasks } from "../tasks/list-tasks.ts";
import { nextDueAt, promoteDue } from "../tasks/promote-due.ts";
import { prune } from "../tasks/prune.ts";
import { readSituation } from "../tasks/read-situation.ts";
import { countTasks, getTask, heldTask, queueDepth, taskStatus, taskTree } from "../tasks/read-tasks.ts";
import { readWaiting } from "../tasks/read-waiting.ts";
import { release } from "../tasks/release.ts";
import { rescueTasks } from "../tasks/rescue-tasks.ts";
import { retryTask } from "../tasks/retry-task.ts";
import { boundsUsed } from "../tasks/submit-bounds.ts";
import { postgresTaskLogs } from "../tasks/task-logs.ts";
import { postgresAgents } from "../tenants/agents.ts";
import { postgresKeys } from "../tenants/keys.ts";
import { postgresLanes } from "../tenants/lanes.ts";
import { postgresTenants } from "../tenants/tenants.ts";
import { postgresWorkers } from "../workers/workers.ts";
import { connectionConfig } from "./connection-config.ts";
import { PostgresDatabase, type PostgresOptions } from "./database.ts";
import { migrateDatabase } from "./migrate.ts";
import { postgresNodes } from "./nodes.ts";
import { sharedSecret } from "./shared-secret.ts";
import { untilUp } from "./until-up.ts";

/** Opens a PostgreSQL database, which any number of nodes may share. */
export async function openPostgres(options: PostgresOptions): Promise<Storage> {
  const { waitMs = 0, onWait = () => {} } = options;
  const config = connectionConfig(options.url);
  await untilUp(() => migrateDatabase(config), { waitMs, onWait });
  const db = await PostgresDatabase.open(config, options);
  return {
    capabilities: { durable: true, exclusive: false, claimsAhead: true },
    tasks: {
      insert: (params) => insertTasks(db, params),
      keptKeys: (params) => keptKeys(db, params),
      finishAndClaim: (params) => finishAndClaim(db, params),
      get: (params) => getTask(db, params),
      status: (params) => taskStatus(db, params),
      held: (params) => heldTask(db, params),
      boundsUsed: (bounds) => boundsUsed(db, bounds),
      tree: (params) => taskTree(db, params),
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
    workers: postgresWorkers(db),
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
    rollups: postgresRollups(db),
    counters: {
      recountOne: (params) => recountOne(db, params),
      recountAll: (params) => recountAll(db, params),
    },
    sharedSecret: (params) => sharedSecret(db, params),
    now: () => db.now(),
    check: () => db.check(),
    subscribe: (listener) => db.subscribe(listener),
    close: () => db.close(),
  };
}
