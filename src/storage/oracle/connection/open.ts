/**
 * The storage contract in plain TypeScript: arrays, loops and no cleverness. Tests compare the drivers with it, so this code
 * defines what each rule means. Operations never yield before they end; they need no other transaction.
 */
import type { Clock } from "../../../model/clock.ts";
import { RotaError } from "../../../model/errors.ts";
import type { CounterFault, RecountParams, Storage } from "../../storage.ts";
import {
  appendAudit,
  endOfChain,
  listAudit,
  nextChain,
  pruneAudit,
  prunedOf,
  readChain,
} from "../log/audit.ts";
import { claimDeliveries } from "../log/claim-deliveries.ts";
import {
  getDelivery,
  listDeliveries,
  putBackDeliveries,
  resendDelivery,
  settleDeliveries,
} from "../log/deliveries.ts";
import {
  lastNotificationUntil,
  notificationMark,
  notificationRange,
  readNotifications,
} from "../log/notifications.ts";
import { pageEvents } from "../log/page-events.ts";
import { eventMark, eventRange, lastEventUntil, readEvents } from "../log/read-events.ts";
import { advanceRollups, pruneRollups, readRollups, rollupsLateMs } from "../log/rollups.ts";
import { dueSchedules, nextScheduleAt } from "../schedules/due-schedules.ts";
import { fireSchedules } from "../schedules/fire-schedules.ts";
import { dueRows, rewindSchedule } from "../schedules/rewind-schedule.ts";
import { getRun, listRuns, pruneRuns } from "../schedules/runs.ts";
import {
  countSchedules,
  countSelected,
  createSchedule,
  deleteSchedule,
  getSchedule,
  listSchedules,
  ofMaker,
  pageOfSchedules,
  pauseOfKey,
  sizeOfSchedule,
  updateSchedule,
} from "../schedules/schedules.ts";
import { postAnswer } from "../sessions/post-answer.ts";
import { readTurns } from "../sessions/read-turns.ts";
import { sendMessage } from "../sessions/send-message.ts";
import { deleteSession, getSession, listSessions, stopSession, updateSession } from "../sessions/sessions.ts";
import { takeMessages } from "../sessions/take-messages.ts";
import { emptyState, type OracleState } from "../state.ts";
import { batchTasks, getBatch } from "../tasks/batches.ts";
import { abortBulk, addBulk, claimBulk, getBulk, stepBulk } from "../tasks/bulks.ts";
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
import { appendLogs, readLogs } from "../tasks/task-logs.ts";
import {
  agentChanges,
  boundedAgents,
  configureAgent,
  createAgent,
  deleteAgent,
  listAgents,
  updateAgent,
} from "../tenants/agents.ts";
import { anyKey, createKey, deleteKey, findKeys, getKey, listKeys, touchKeys } from "../tenants/keys.ts";
import { clearLane, configureLanes, laneSettings, listLanes, putLane } from "../tenants/lanes.ts";
import {
  countStored,
  createTenant,
  deleteTenant,
  getTenant,
  listTenants,
  setTenantDisabled,
  updateTenant,
} from "../tenants/tenants.ts";
import { listWebhookSecrets, rotateWebhookSecret } from "../tenants/webhook-secrets.ts";
import { exchangeForWorkers } from "../workers/exchange.ts";
import { preemptForWorkers } from "../workers/preempt-for-workers.ts";
import { takeBack } from "../workers/take-back.ts";
import {
  countWorkers,
  drainWorker,
  endsOfAttempts,
  findWorkerAttempts,
  getWorker,
  listWorkers,
  markWorkerLost,
  nameAttempts,
  overdueAttempts,
  pruneWorkers,
  registerWorker,
  removeWorker,
  renewWorkers,
  watchWorkers,
} from "../workers/workers.ts";
import { isKnown, knownNames } from "./abilities.ts";
import { forgetAgents } from "./abilities-changed.ts";
import {
  heartbeat,
  listNodes,
  markNodeDead,
  nodeDetails,
  registerNode,
  removeNode,
  setNodeAbilities,
  setNodeSlots,
} from "./nodes.ts";

export function openOracle({ clock }: { clock: Clock }): Storage {
  const state = emptyState(clock);
  let closed = false;

  function on<Params, Answer>(operation: (state: OracleState, params: Params) => Answer) {
    return async (params: Params): Promise<Awaited<Answer>> => {
      if (closed) throw new RotaError("storage_unavailable", "The storage is closed.");
      return await operation(state, params);
    };
  }

  return {
    capabilities: { durable: false, exclusive: true, claimsAhead: false },
    tasks: {
      insert: on(insertTasks),
      keptKeys: on(keptKeys),
      finishAndClaim: on(finishAndClaim),
      claimAlone: on(claimAlone),
      isAloneWaiting: on(isAloneWaiting),
      get: on(getTask),
      status: on(taskStatus),
      held: on(heldTask),
      boundsUsed: on(boundsUsed),
      tree: on(taskTree),
      getBatch: on(getBatch),
      batchTasks: on(batchTasks),
      situation: on(readSituation),
      list: on(listTasks),
      listRows: on(listTaskRows),
      counts: on(countTasks),
      queueDepth: on(queueDepth),
      waiting: on(readWaiting),
      cancel: on(cancelTasks),
      retry: on(retryTask),
      promoteDue: on(promoteDue),
      expire: on(expireTasks),
      failUnserved: on(failUnserved),
      nextDueAt: on<void, number | null>(nextDueAt),
      dependencyResults: on(dependencyResults),
      release: on(release),
      rescue: on(rescueTasks),
      prune: on(prune),
    },
    events: {
      read: on(readEvents),
      page: on(pageEvents),
      mark: on(eventMark),
      lastUntil: on(lastEventUntil),
      range: on<void, ReturnType<typeof eventRange>>(eventRange),
    },
    logs: { append: on(appendLogs), read: on(readLogs) },
    nodes: {
      register: on(registerNode),
      setSlots: on(setNodeSlots),
      setAbilities: on(setNodeAbilities),
      heartbeat: on(heartbeat),
      list: on<void, ReturnType<typeof listNodes>>(listNodes),
      details: on<void, ReturnType<typeof nodeDetails>>(nodeDetails),
      markDead: on(markNodeDead),
      remove: on(removeNode),
    },
    workers: {
      register: on(registerWorker),
      get: on(getWorker),
      list: on(listWorkers),
      count: on(countWorkers),
      renew: on(renewWorkers),
      drain: on(drainWorker),
      watch: on<void, ReturnType<typeof watchWorkers>>(watchWorkers),
      markLost: on(markWorkerLost),
      remove: on(removeWorker),
      exchange: on(exchangeForWorkers),
      attempts: on(findWorkerAttempts),
      ends: on(endsOfAttempts),
      name: on(nameAttempts),
      takeBack: on(takeBack),
      overdue: on(overdueAttempts),
      preempt: on(preemptForWorkers),
      prune: on<void, void>(pruneWorkers),
    },
    lanes: {
      configure: on(configureLanes),
      list: on<void, ReturnType<typeof listLanes>>(listLanes),
      put: on(putLane),
      settings: on<void, ReturnType<typeof laneSettings>>(laneSettings),
      clear: on(clearLane),
    },
    sessions: {
      send: on(sendMessage),
      stop: on(stopSession),
      readTurns: on(readTurns),
      takeMessages: on(takeMessages),
      post: on(postAnswer),
      get: on(getSession),
      list: on(listSessions),
      update: on(updateSession),
      delete: on(deleteSession),
    },
    schedules: {
      create: on(createSchedule),
      get: on(getSchedule),
      size: on(sizeOfSchedule),
      list: on(listSchedules),
      count: on(countSelected),
      page: on(pageOfSchedules),
      update: on(updateSchedule),
      delete: on(deleteSchedule),
      pauseOfKey: on(pauseOfKey),
      ofMaker: on(ofMaker),
      status: on(countSchedules),
      due: on(dueSchedules),
      nextDueAt: on(nextScheduleAt),
      fire: on(fireSchedules),
      dueRows: on(dueRows),
      rewind: on(rewindSchedule),
      getRun: on(getRun),
      listRuns: on(listRuns),
      prune: on(pruneRuns),
    },
    notifications: {
      read: on(readNotifications),
      mark: on(notificationMark),
      lastUntil: on(lastNotificationUntil),
      range: on<void, ReturnType<typeof notificationRange>>(notificationRange),
    },
    agents: {
      configure: on(configureAgent),
      bounded: on<void, ReturnType<typeof boundedAgents>>(boundedAgents),
      create: on(createAgent),
      update: on(updateAgent),
      delete: on(deleteAgent),
      list: on<void, ReturnType<typeof listAgents>>(listAgents),
      changes: on(agentChanges),
      isKnown: on(isKnown),
      knownNames: on(knownNames),
      forget: on<void, void>(forgetAgents),
    },
    deliveries: {
      claim: on(claimDeliveries),
      settle: on(settleDeliveries),
      putBack: on(putBackDeliveries),
      list: on(listDeliveries),
      get: on(getDelivery),
      resend: on(resendDelivery),
    },
    tenants: {
      create: on(createTenant),
      get: on(getTenant),
      list: on<void, ReturnType<typeof listTenants>>(listTenants),
      update: on(updateTenant),
      setDisabled: on(setTenantDisabled),
      delete: on(deleteTenant),
      countStored: on(countStored),
      rotateWebhookSecret: on(rotateWebhookSecret),
      webhookSecrets: on<void, ReturnType<typeof listWebhookSecrets>>(listWebhookSecrets),
    },
    keys: {
      create: on(createKey),
      findByHashes: on(findKeys),
      get: on(getKey),
      list: on(listKeys),
      any: on<void, boolean>(anyKey),
      delete: on(deleteKey),
      touch: on(touchKeys),
    },
    rollups: {
      advance: on(advanceRollups),
      read: on(readRollups),
      lateMs: on<void, number>(rollupsLateMs),
      prune: on(pruneRollups),
    },
    audit: {
      append: on(appendAudit),
      list: on(listAudit),
      prune: on(pruneAudit),
      endOf: on(endOfChain),
      nextChain: on(nextChain),
      prunedOf: on(prunedOf),
      readChain: on(readChain),
    },
    bulks: {
      add: on(addBulk),
      get: on(getBulk),
      abort: on(abortBulk),
      claim: on(claimBulk),
      step: on(stepBulk),
    },
    // Counts are computed on every read, so that no counter can be wrong.
    counters: { recountOne: on(() => []), recountAll: on(recountAll) },

    sharedSecret: on(({ sharedSecrets }, { name, fresh }: { name: string; fresh: string }) => {
      if (!sharedSecrets.has(name)) sharedSecrets.set(name, fresh);
      return sharedSecrets.get(name) as string;
    }),
    now: on<void, number>(() => clock.now()),
    check: on<void, void>(() => undefined),
    subscribe(listener) {
      state.listeners.add(listener);
      return () => void state.listeners.delete(listener);
    },
    async close() {
      closed = true;
      state.listeners.clear();
    },
  };
}

/** There are no counters that could be wrong. */
async function recountAll({ tasks }: OracleState, params: RecountParams = {}): Promise<CounterFault[]> {
  const { limit = Number.POSITIVE_INFINITY, onSlice } = params;
  const rowsTotal = tasks.length;
  let rows = 0;
  do {
    rows = Math.min(rows + limit, rowsTotal);
    await onSlice?.({ rows, rowsTotal });
  } while (rows < rowsTotal);
  return [];
}
