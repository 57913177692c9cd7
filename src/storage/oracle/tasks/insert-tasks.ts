import { PREEMPTIONS_MAX, rankOf } from "../../../model/priority.ts";
import { rejectionError } from "../../admission.ts";
import { batchConflict } from "../../batch-conflict.ts";
import { dependencyError } from "../../dependency-error.ts";
import { claimOfInsert } from "../../insert-claim.ts";
import type { AdmissionLimits, InsertedTask, InsertTasksParams, NewBatch, NewTask } from "../../storage.ts";
import { agentQueueFor, isUnserved } from "../connection/abilities.ts";
import { addEvent } from "../log/add-event.ts";
import { ensureSession } from "../sessions/sessions.ts";
import {
  copyJson,
  countWaiting,
  findTask,
  isSameAgent,
  isWaiting,
  type OracleState,
  type OracleTask,
  signal,
} from "../state.ts";
import { forgetEmptyBatches } from "./batches.ts";
import { enterQueue } from "./enter-queue.ts";
import { finishAndClaim } from "./finish-and-claim.ts";
import { findByKey } from "./idempotency-keys.ts";
import { preempt } from "./preempt-tasks.ts";
import { settleMoves } from "./settle-moves.ts";
import { countBounded } from "./submit-bounds.ts";

export function insertTasks(state: OracleState, params: InsertTasksParams): InsertedTask[] {
  const { tasks, batches = [], limits, bounds } = params;
  const unknown = tasks.find((task) => !state.lanes.has(task.lane));
  if (unknown !== undefined) throw new Error(`lane "${unknown.lane}" is not configured`);
  const before = batches.length > 0 || bounds !== undefined ? copyOf(state) : {};
  const created: OracleTask[] = [];
  const insert = (task: NewTask) => {
    const inserted = insertTask(state, task, limits);
    if (inserted.rejection === null) created.push(inserted);
    return inserted;
  };
  for (const batch of batches) {
    if (state.batches.some(({ id }) => id === batch.id)) continue;
    state.batches.push({ ...batch, createdAt: state.clock.now(), completedAt: null });
  }
  const isNew = tasks.every(
    ({ id }, index) =>
      findById(state, id) === undefined && tasks.findIndex((task) => task.id === id) === index,
  );
  const answers = tasks.map((task) => {
    const made = findByKey(state, task);
    return made ?? toInserted(state, findById(state, task.id) ?? insert(task));
  });
  refuseConflicts(state, before, tasks, answers, batches);
  if (bounds !== undefined) orRestore(state, before, () => countBounded(state, bounds, created));
  // A batch is not created if all its tasks existed before.
  forgetEmptyBatches(state);
  settleMoves(state);
  preempt(state);
  signal(state, { kind: "events" }, { kind: "work" }, { kind: "due" });
  const inserted = answers.map((answer) => asItIsNow(state, answer));
  const claim = isNew ? claimOfInsert(params) : undefined;
  if (claim !== undefined) {
    const { node, claims, onClaimed } = claim;
    onClaimed(finishAndClaim(state, { node, finishes: [], progress: [], claims }));
  }
  return inserted;
}

/** The result of an insert. A dependency may have cancelled the task since it was inserted. */
function asItIsNow(state: OracleState, answer: InsertedTask): InsertedTask {
  const task = state.tasks.find(({ seq }) => seq === answer.seq);
  return task?.state === "cancelled" && answer.state === "waiting_dependency"
    ? { ...answer, state: "cancelled" }
    : answer;
}

export function insertTask(state: OracleState, input: NewTask, limits: AdmissionLimits): OracleTask {
  const { kind: queueKind } = agentQueueFor(state, input);
  const now = state.clock.now();
  const rejection = admit(state, input, limits);
  const unmet = rejection ? 0 : countUnmet(state, input);
  const isDelayed = unmet === 0 && input.runAt !== null && input.runAt > now;
  const defaultDeadlineMs = input.deadline === null ? input.deadlineAfterMs : null;

  state.lastTaskSeq += 1;
  const task: OracleTask = {
    seq: state.lastTaskSeq,
    id: input.id,
    tenant: input.tenant,
    agent: input.agent,
    lane: input.lane,
    priority: input.priority,
    state: rejection ? "rejected" : unmet > 0 ? "waiting_dependency" : isDelayed ? "delayed" : "queued",
    position: rejection || unmet > 0 || isDelayed ? 0 : countWaiting(state, input) + 1,
    createdAt: now,
    runAt: input.runAt,
    deadline:
      defaultDeadlineMs === null
        ? input.deadline
        : unmet > 0
          ? null
          : Math.max(now, input.runAt ?? now) + defaultDeadlineMs,
    retryCount: 0,
    batch: input.batch,
    session: input.session?.key ?? null,
    schedule: input.schedule,
    concurrencyKey: input.concurrencyKey,
    callbackUrl: input.callbackUrl,
    startedAt: null,
    completedAt: rejection ? now : null,
    spec: copyJson(input.spec),
    result: undefined,
    error: rejection ? rejectionError(rejection.full) : null,
    usage: null,
    attempts: [],
    summary: null,
    defaultDeadlineMs,
    maxRetriesIfLost: input.maxRetriesIfLost,
    rank: rankOf(
      { priority: input.priority, createdAt: now, runAt: input.runAt },
      state.lanes.get(input.lane)?.agingMs ?? 0,
    ),
    parked: null,
    origin: input.origin,
    sessionPosition: nextSessionPosition(state, input),
    inSession: false,
    steerUntil: null,
    takenBy: null,
    collects: false,
    preemptionsLeft: input.preemptible ? PREEMPTIONS_MAX : 0,
    dependsOn: input.dependsOn,
    rejection,
    queueKind,
    losses: 0,
    unservedAt: null,
    held: null,
  };
  state.tasks.push(task);
  if (rejection) addEvent(state, "task.rejected", task, { error: rejectionError(rejection.full) });
  else addEvent(state, "task.created", task, { state: task.state });
  if (task.state === "queued") enterQueue(state, task);
  if (!rejection) keepKey(state, input, task);
  if (!rejection) releaseFromFailedParents(state, task);
  return task;
}

/** A batch is inserted whole: if one of its tasks reuses an idempotency key for another request, the whole call is refused. */
function refuseConflicts(
  state: OracleState,
  before: Partial<OracleState>,
  tasks: readonly NewTask[],
  answers: readonly InsertedTask[],
  batches: readonly NewBatch[],
): void {
  const index = answers.findIndex(
    ({ repeats }, index) => repeats === "other" && batches.some(({ id }) => id === tasks[index]?.batch),
  );
  if (index === -1) return;
  Object.assign(state, before);
  throw batchConflict({ taskId: answers[index]?.id ?? "", refused: tasks[index]?.id ?? "" });
}

/** Restores the state if `work` throws. */
export function orRestore(state: OracleState, before: Partial<OracleState>, work: () => void): void {
  try {
    work();
  } catch (error) {
    Object.assign(state, before);
    throw error;
  }
}

/** Everything that an insert, a retry or a run may change. */
export function copyOf(state: OracleState): Partial<OracleState> {
  const { tasks, agentQueues, tenantQueues, events, releases, keys, batches, sessions } = state;
  const { deliveries, receivers, deliveryTurns, boundedTasks, boundedSubmits, runs, schedules } = state;
  const { notifications, lastNotificationSeq } = state;
  const { lastTaskSeq, lastEventSeq, newestEventSeq, lastSessionSeq, lastRunId } = state;
  const copies = structuredClone({
    tasks,
    agentQueues,
    tenantQueues,
    events,
    releases,
    keys,
    deliveries,
    receivers,
    deliveryTurns,
    batches,
    sessions,
    boundedTasks,
    boundedSubmits,
    runs,
    schedules,
    notifications,
  });
  return {
    ...copies,
    ...{
      newCriticalTasks: [],
      lastTaskSeq,
      lastEventSeq,
      newestEventSeq,
      lastSessionSeq,
      lastNotificationSeq,
      lastRunId,
    },
  };
}

function keepKey(state: OracleState, { tenant, idempotency }: NewTask, { seq: taskSeq }: OracleTask): void {
  if (idempotency === null) return;
  state.keys = state.keys.filter((each) => each.tenant !== tenant || each.key !== idempotency.key);
  state.keys.push({ tenant, ...idempotency, taskSeq, createdAt: state.clock.now() });
}

function countUnmet(state: OracleState, { tenant, dependsOn }: NewTask): number {
  return dependsOn.filter((id) => findTask(state, { tenant, id })?.state !== "done").length;
}

/** Queues a notification for this task alone, for each dependency that has ended without being done before the task came. */
function releaseFromFailedParents(state: OracleState, task: OracleTask): void {
  for (const id of task.dependsOn) {
    const parent = findTask(state, { tenant: task.tenant, id });
    if (parent?.state !== "failed" && parent?.state !== "cancelled" && parent?.state !== "rejected") continue;
    const error = dependencyError(parent.id, parent.state);
    state.releases.push({ parentSeq: parent.seq, error, comesBack: null, afterSeq: task.seq - 1 });
  }
}

/** Checks the queue of all tenants first, then the tenant's own, then the agent's. */
function admit(state: OracleState, input: NewTask, limits: AdmissionLimits): OracleTask["rejection"] {
  if (input.origin !== "task") return null;
  const isDisabled = (tenant: string) => state.tenants.get(tenant)?.disabled ?? false;
  const counted = state.tasks.filter((task) => isWaiting(task) && task.origin === "task");
  const waitingOf = (of: string) => counted.filter(({ tenant }) => tenant === of).length;
  const isShared = [...state.tenants.values()].filter(({ disabled }) => !disabled).length > 1;
  const half = isShared ? Math.floor(limits.maxQueueSizeTotal / 2) : Number.POSITIVE_INFINITY;
  // Tasks of a tenant beyond its half, which only retries cause, do not count against others.
  const waitingOfEnabled = [...new Set(counted.map(({ tenant }) => tenant))]
    .filter((tenant) => !isDisabled(tenant))
    .reduce((sum, tenant) => sum + Math.min(waitingOf(tenant), half), 0);
  const waitingOfTenant = waitingOf(input.tenant);
  if (!isDisabled(input.tenant) && waitingOfEnabled >= limits.maxQueueSizeTotal)
    return { full: "server", queued: waitingOfTenant };
  const maxOfTenant = state.tenants.get(input.tenant)?.limits.maxQueued ?? null;
  if (waitingOfTenant >= (maxOfTenant ?? limits.maxQueueSize))
    return { full: "global", queued: waitingOfTenant };
  if (waitingOfTenant >= half) return { full: "server", queued: waitingOfTenant };
  const waitingOfAgent = counted.filter((task) => isSameAgent(task, input)).length;
  if (waitingOfAgent >= (input.maxQueued ?? limits.maxPerAgent))
    return { full: "agent", queued: waitingOfAgent };
  return null;
}

/** Assigns a position in the session, and creates the session for its first task. */
function nextSessionPosition(state: OracleState, { tenant, agent, session: given }: NewTask): number {
  if (given === null) return 0;
  const session = ensureSession(state, { tenant, key: given.key, defaultMax: given.maxConcurrent, agent });
  session.lastPosition += 1;
  return session.lastPosition;
}

/** Rota generates ids, so they are unique across tenants. */
function findById(state: OracleState, id: string): OracleTask | undefined {
  return state.tasks.find((task) => task.id === id);
}

/** The result of an insert, from what is stored. So a repeated insert returns the same. */
export function toInserted(state: OracleState, task: OracleTask): InsertedTask {
  const { seq, id, position, createdAt, runAt, deadline, rejection } = task;
  const waits = task.state === "waiting_dependency" ? "waiting_dependency" : "delayed";
  const found = rejection ? "rejected" : position > 0 ? "queued" : waits;
  const unserved = !rejection && isUnserved(state, task) ? { unserved: true as const } : {};
  return {
    seq,
    id,
    state: found,
    position,
    createdAt,
    runAt,
    deadline,
    rejection,
    repeats: null,
    ...unserved,
  };
}
