import { agentKey, agentOfKey } from "../../../model/agent.ts";
import { type AttemptEnd, workerState, workersFull } from "../../../model/worker.ts";
import {
  AGENTS_SEEN_MAX,
  ALL_AGENTS,
  type AttemptNames,
  CLAIM_KEPT_MS,
  type Held,
  type ListWorkersParams,
  LOST_WORKERS_MAX,
  type NewWorker,
  type OverdueAttempt,
  SILENT_FOR,
  WORKER_BACK,
  WORKER_KEPT_MS,
  type WorkerAttempt,
  type WorkerCount,
  type WorkerRecord,
  type WorkerSign,
  type WorkerStorage,
  type WorkerWatch,
} from "../../storage.ts";
import { isOpenToWorkers } from "../connection/abilities.ts";
import { abilitiesChanged } from "../connection/abilities-changed.ts";
import { notifyOfWorker } from "../log/notifications.ts";
import {
  type OracleState,
  type OracleTask,
  type OracleWorker,
  type OracleWorkerAttempt,
  signal,
  toRecord,
} from "../state.ts";
import { beginHeld } from "../tasks/finish-and-claim.ts";
import { preempt } from "../tasks/preempt-tasks.ts";
import { hasSecondEnabledTenant } from "../tasks/room.ts";

export function registerWorker(
  state: OracleState,
  worker: NewWorker,
): Awaited<ReturnType<WorkerStorage["register"]>> {
  const now = state.clock.now();
  const known = [...state.workers.values()].find(
    ({ tenant, instance }) => tenant === worker.tenant && instance !== null && instance === worker.instance,
  );
  const { tenant } = worker;
  const served = worker.agents.find(
    (agent) => agent !== ALL_AGENTS && !isOpenToWorkers(state, { tenant, agent }),
  );
  if (served !== undefined) return { served };
  const full = known === undefined || known.lost ? fullFor(state, tenant) : null;
  if (full !== null) return { full };
  const life = { draining: false, lost: false, registeredAt: now, seenAt: now };
  if (known !== undefined) rememberWorkerAgents(state, known);
  const record =
    known === undefined
      ? { ...worker, ...life, polledAt: null, beat: 0, ends: [] }
      : { ...known, ...worker, ...life, id: known.id, beat: known.beat + 1 };
  state.workers.set(record.id, record);
  abilitiesChanged(state);
  if (known !== undefined) signal(state, { kind: "workers", ids: [known.id] });
  if (known === undefined || known.lost) {
    const reason = known === undefined ? null : WORKER_BACK;
    notifyOfWorker(state, "worker.registered", record, { reason, attempts: null });
  }
  return { id: record.id, isNew: known === undefined };
}

/** Which limit keeps another live worker of this tenant out; null: none. */
function fullFor(state: OracleState, tenant: string): ReturnType<typeof workersFull> {
  const live = [...state.workers.values()].filter(({ lost }) => !lost);
  const own = live.filter((worker) => worker.tenant === tenant);
  return workersFull({ all: live.length, own: own.length, isShared: hasSecondEnabledTenant(state) });
}

export function getWorker(
  state: OracleState,
  { tenant, id }: { tenant: string; id: string },
): WorkerRecord | null {
  const worker = state.workers.get(id);
  return worker === undefined || worker.tenant !== tenant ? null : toWorkerRecord(state, worker);
}

export function listWorkers(
  state: OracleState,
  { tenant, limit, after, agents }: ListWorkersParams,
): WorkerRecord[] {
  const byName = (a: Pick<WorkerRecord, "name" | "id">, b: Pick<WorkerRecord, "name" | "id">) =>
    compare(a.name, b.name) || compare(a.id, b.id);
  return [...state.workers.values()]
    .filter((worker) => worker.tenant === tenant && (after === undefined || byName(worker, after) > 0))
    .filter(
      (worker) =>
        agents === undefined || (!worker.lost && agents.some((agent) => worker.agents.includes(agent))),
    )
    .sort(byName)
    .slice(0, limit)
    .map((worker) => toWorkerRecord(state, worker));
}

export function countWorkers(state: OracleState, { tenant }: { tenant: string }): WorkerCount[] {
  const own = listWorkers(state, { tenant });
  const byState = Map.groupBy(own, (worker) => workerState(worker, state.clock.now()));
  return [...byState]
    .map(([of, workers]) => ({
      state: of,
      count: workers.length,
      slots: workers.reduce((sum, { slots }) => sum + slots, 0),
      held: workers.reduce((sum, { held }) => sum + held, 0),
    }))
    .sort((a, b) => compare(a.state, b.state));
}

export function renewWorkers(
  state: OracleState,
  { signs }: { signs: readonly WorkerSign[] },
): { unknown: string[] } {
  const unknown: string[] = [];
  const now = state.clock.now();
  for (const { worker: id, polls } of signs) {
    const worker = state.workers.get(id);
    if (worker === undefined) {
      unknown.push(id);
      continue;
    }
    worker.beat += 1;
    worker.seenAt = now;
    if (polls) worker.polledAt = now;
    if (worker.lost && fullFor(state, worker.tenant) !== null) {
      unknown.push(id);
    } else if (worker.lost) {
      worker.lost = false;
      abilitiesChanged(state);
      notifyOfWorker(state, "worker.registered", worker, { reason: WORKER_BACK, attempts: null });
    }
  }
  return { unknown };
}

export function drainWorker(state: OracleState, { tenant, id }: { tenant: string; id: string }): boolean {
  const worker = state.workers.get(id);
  if (worker === undefined || worker.tenant !== tenant) return false;
  worker.draining = true;
  signal(state, { kind: "workers", ids: [id] });
  return true;
}

export function watchWorkers(state: OracleState): WorkerWatch {
  const workers = [...state.workers.values()]
    .filter(({ id, lost }) => !lost || heldBy(state, id).length > 0)
    .sort((a, b) => compare(a.id, b.id));
  const due = heldAttempts(state).flatMap((attempt) => dueAt(attempt) ?? []);
  return {
    workers: workers.map((worker) => {
      const { id, tenant, name, beat, lost, leaseMs, slots, draining, registeredAt, polledAt } = worker;
      const held = heldBy(state, id).length;
      return { worker: id, tenant, name, beat, lost, leaseMs, held, slots, draining, registeredAt, polledAt };
    }),
    any: state.workers.size > 0,
    nextDueAt: due.length === 0 ? null : Math.min(...due),
  };
}

export function markWorkerLost(
  state: OracleState,
  { worker: id, beat }: { worker: string; beat: number },
): readonly string[] | null {
  const worker = state.workers.get(id);
  if (worker === undefined || worker.lost || worker.beat !== beat) return null;
  worker.lost = true;
  const attempts = heldBy(state, id).length;
  if (!worker.draining || attempts > 0)
    notifyOfWorker(state, "worker.lost", worker, { reason: `${SILENT_FOR}${worker.leaseMs} ms`, attempts });
  rememberWorkerAgents(state, worker);
  abilitiesChanged(state);
  return worker.agents;
}

export function removeWorker(state: OracleState, { tenant, id }: { tenant: string; id: string }): boolean {
  const worker = state.workers.get(id);
  if (worker === undefined || worker.tenant !== tenant || heldBy(state, id).length > 0) return false;
  if (!worker.lost) rememberWorkerAgents(state, worker);
  state.workers.delete(id);
  abilitiesChanged(state);
  signal(state, { kind: "workers", ids: [id] });
  return true;
}

export function findWorkerAttempts(state: OracleState, params: AttemptNames): WorkerAttempt[] {
  const named: (string | number)[] = "hashes" in params ? [...params.hashes] : [...params.tokens];
  return named.flatMap((name) => {
    const attempt = state.workerAttempts.find(({ hash, token }) => hash === name || token === name);
    if (attempt === undefined) return [];
    const { hash, worker, tenant, taskId, seq, token, number, usage, recorded } = attempt;
    const held = isHeld(state, attempt);
    return { hash, worker, tenant, taskId, seq, token, number, usage, recorded, held };
  });
}

export function endsOfAttempts(
  state: OracleState,
  { attempts }: Parameters<WorkerStorage["ends"]>[0],
): (AttemptEnd | null)[] {
  return attempts.map(({ seq, number }) => {
    const task = state.tasks.find((each) => each.seq === seq);
    const attempt = task?.attempts.find((each) => each.number === number);
    if (attempt === undefined || attempt.endedAt === null) return null;
    return { outcome: attempt.outcome, error: attempt.error };
  });
}

export function nameAttempts(
  state: OracleState,
  { worker, attempts, all }: Parameters<WorkerStorage["name"]>[0],
): { dropped: Held[] } {
  const dropped: Held[] = [];
  for (const attempt of heldAttempts(state).filter((each) => each.worker === worker)) {
    const named = attempts.find(({ hash }) => hash === attempt.hash);
    if (named !== undefined) {
      attempt.named = true;
      attempt.missed = 0;
      beginHeld(state, worker, attempt);
      if (named.usage !== undefined) attempt.usage = larger(attempt.usage, named.usage);
    } else if (all && attempt.named) {
      attempt.missed += 1;
      if (attempt.missed >= 2) dropped.push({ seq: attempt.seq, token: attempt.token });
    }
  }
  preempt(state);
  signal(state, { kind: "events" });
  return { dropped };
}

/** The larger of each figure; what describes the last call is taken from the new report. */
function larger(
  before: OracleWorkerAttempt["usage"],
  now: NonNullable<OracleWorkerAttempt["usage"]>,
): OracleWorkerAttempt["usage"] {
  return {
    ...before,
    ...now,
    inputTokens: Math.max(before?.inputTokens ?? 0, now.inputTokens),
    outputTokens: Math.max(before?.outputTokens ?? 0, now.outputTokens),
  };
}

export function overdueAttempts(state: OracleState, { limit }: { limit: number }): OverdueAttempt[] {
  const now = state.clock.now();
  return heldAttempts(state)
    .filter((attempt) => (dueAt(attempt) ?? Number.POSITIVE_INFINITY) <= now)
    .sort((a, b) => (dueAt(a) ?? 0) - (dueAt(b) ?? 0) || a.seq - b.seq)
    .slice(0, limit)
    .map((attempt) => {
      const { worker, seq, token } = attempt;
      const task = state.tasks.find((each) => each.seq === seq);
      if (task === undefined) throw new Error("A held attempt has a task.");
      return { worker, seq, token, reason: reasonOf(attempt, now), task: toRecord(task) };
    });
}

function reasonOf({ deadline, timesOutAt }: OracleWorkerAttempt, now: number): OverdueAttempt["reason"] {
  if (deadline !== null && deadline <= now) return "deadline";
  return timesOutAt !== null && timesOutAt <= now ? "timeout" : "unnamed";
}

export function pruneWorkers(state: OracleState): void {
  const now = state.clock.now();
  for (const attempt of state.workerAttempts)
    if (attempt.endedAt === null && !isHeld(state, attempt)) attempt.endedAt = now;
  state.workerAttempts = state.workerAttempts.filter(
    ({ endedAt }) => endedAt === null || endedAt > now - CLAIM_KEPT_MS,
  );
  for (const worker of state.workers.values())
    worker.ends = worker.ends.filter(({ minute }) => minute > firstMinute(now));
  const lost = [...state.workers.values()].filter((worker) => worker.lost);
  for (const own of Map.groupBy(lost, ({ tenant }) => tenant).values()) {
    own.sort((a, b) => b.seenAt - a.seenAt || compare(a.id, b.id));
    for (const [index, { id, seenAt }] of own.entries()) {
      const isSurplus = seenAt <= now - WORKER_KEPT_MS || index >= LOST_WORKERS_MAX;
      if (isSurplus && heldBy(state, id).length === 0) state.workers.delete(id);
    }
  }
}

export function isHeld(state: OracleState, { seq, token }: Held): boolean {
  return state.tasks.some((task) => task.seq === seq && task.held?.token === token);
}

export function heldBy(state: OracleState, worker: string): OracleTask[] {
  return state.tasks.filter((task) => task.held?.node === worker);
}

function heldAttempts(state: OracleState): OracleWorkerAttempt[] {
  return state.workerAttempts.filter((attempt) => isHeld(state, attempt));
}

/** When `overdue` returns it; null: never. */
function dueAt({ named, assignedAt, leaseMs, timesOutAt, deadline }: OracleWorkerAttempt): number | null {
  const times = [named ? null : assignedAt + leaseMs, timesOutAt, deadline].flatMap((at) => at ?? []);
  return times.length === 0 ? null : Math.min(...times);
}

function rememberWorkerAgents(state: OracleState, { tenant, agents }: OracleWorker): void {
  for (const agent of agents)
    if (agent !== ALL_AGENTS) state.workerAgentsSeen.set(agentKey({ tenant, agent }), state.clock.now());
  const own = [...state.workerAgentsSeen]
    .map(([key, at]) => ({ key, at, name: agentOfKey(key) }))
    .filter(({ name }) => name.tenant === tenant)
    .sort((a, b) => b.at - a.at || compare(a.name.agent, b.name.agent));
  for (const { key } of own.slice(AGENTS_SEEN_MAX)) state.workerAgentsSeen.delete(key);
}

function toWorkerRecord(state: OracleState, worker: OracleWorker): WorkerRecord {
  const { beat: _, ends, ...record } = worker;
  const recent = ends.filter(({ minute }) => minute > firstMinute(state.clock.now()));
  return {
    ...record,
    held: heldBy(state, worker.id).length,
    done: recent.filter(({ ok }) => ok).length,
    failed: recent.filter(({ ok }) => !ok).length,
  };
}

export function minuteOf(at: number): number {
  return Math.floor(at / 60_000);
}

function firstMinute(now: number): number {
  return minuteOf(now) - 10;
}

function compare(a: string, b: string): number {
  return a === b ? 0 : a < b ? -1 : 1;
}
