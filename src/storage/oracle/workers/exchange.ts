import { isCritical } from "../../../model/priority.ts";
import { jsonWeight } from "../../../model/text/json-weight.ts";
import { isAloneKind } from "../../alone-queue.ts";
import {
  type AssignedTask,
  EXPIRED_PER_CLAIM_MAX,
  endsOfRota,
  type WorkerExchange,
  type WorkerExchangeParams,
  type WorkerFinish,
  type WorkerPoll,
} from "../../storage.ts";
import { ableNodes, canWorkerRun } from "../connection/abilities.ts";
import { addEvent } from "../log/add-event.ts";
import {
  byRank,
  isOfAgentQueue,
  isReady,
  type OracleAgentQueue,
  type OracleState,
  type OracleTask,
  type OracleWorker,
  signal,
  toRecord,
} from "../state.ts";
import { chooseTask } from "../tasks/claim-tasks.ts";
import { expireOverdue } from "../tasks/expire-tasks.ts";
import { findHeld, finishHeld, startChosen } from "../tasks/finish-and-claim.ts";
import { preempt } from "../tasks/preempt-tasks.ts";
import { agentRoom, hasRoom, shareRoom, tenantRoom } from "../tasks/room.ts";
import { settleMoves } from "../tasks/settle-moves.ts";
import { heldBy, isHeld, minuteOf } from "./workers.ts";

export function exchangeForWorkers(
  state: OracleState,
  { finishes, progress, polls }: WorkerExchangeParams,
): WorkerExchange {
  for (const report of progress) {
    const task = findHeld(state, report.worker, report);
    if (task?.state === "running")
      addEvent(state, "task.progress", task, { progress: report.progress, attempt: task.attempts.length });
  }
  const byWorker = Map.groupBy(finishes, ({ worker }) => worker);
  const finished = [...byWorker].flatMap(([worker, ends]) => finishHeld(state, worker, ends));
  for (const { token } of finished) {
    const finish = finishes.find((each) => each.token === token);
    if (finish !== undefined) countEnd(state, finish);
  }
  const expired = expireOverdue(state, { limit: polls.length > 0 ? EXPIRED_PER_CLAIM_MAX : 0 });
  settleMoves(state);
  const claimed = new Claims(state, polls).make();
  preempt(state);
  const assigned = claimed.reduce((sum, tasks) => sum + (tasks?.length ?? 0), 0);
  if (finished.length > 0) signal(state, { kind: "work" });
  if (finished.length + assigned + expired.length + progress.length > 0) signal(state, { kind: "events" });
  if (finished.some((finish) => finish.state === "delayed")) signal(state, { kind: "due" });
  const decided = endsOfRota(finishes, finished);
  if (decided.length > 0) signal(state, { kind: "fenced", tokens: decided, reason: "cancelled" });
  return { finished, claimed, expired, held: isSomethingHeld(state, polls) };
}

function countEnd(state: OracleState, { worker, settlement, token, recorded }: WorkerFinish): void {
  const attempt = state.workerAttempts.find((each) => each.token === token);
  if (attempt !== undefined) Object.assign(attempt, { endedAt: state.clock.now(), recorded });
  if (settlement.to === "queued") return;
  const minute = minuteOf(state.clock.now());
  state.workers.get(worker)?.ends.push({ minute, ok: settlement.to === "done" });
}

/** A poll that may still get tasks. */
interface OpenPoll {
  readonly poll: WorkerPoll;
  readonly worker: OracleWorker;
  readonly assigned: AssignedTask[];
}

class Claims {
  readonly #state: OracleState;
  readonly #answers: (AssignedTask[] | null)[];
  readonly #open: OpenPoll[] = [];

  constructor(state: OracleState, polls: readonly WorkerPoll[]) {
    this.#state = state;
    this.#answers = polls.map((poll) => {
      const worker = state.workers.get(poll.worker);
      if (worker === undefined || worker.lost) return null;
      const repeated = liveOf(state, poll);
      if (repeated.length > 0) return repeated;
      const assigned: AssignedTask[] = [];
      if (!worker.draining) this.#open.push({ poll, worker, assigned });
      return assigned;
    });
  }

  make(): (AssignedTask[] | null)[] {
    while (this.#assignNext());
    return this.#answers;
  }

  #assignNext(): boolean {
    const state = this.#state;
    const lane = this.#nextLane();
    if (lane === undefined) return false;
    const chosen = chooseTask(
      state,
      lane,
      (agentQueue) => this.#takers(agentQueue).length > 0,
      () => 1,
    );
    if (chosen === undefined) throw new Error("The lane has something to start.");
    const [taker] = this.#takers(chosen.agentQueue);
    if (taker === undefined) throw new Error("A poll can take it.");
    this.#assign(taker, chosen);
    return true;
  }

  #assign({ poll, worker, assigned }: OpenPoll, chosen: Parameters<typeof startChosen>[2]): void {
    const state = this.#state;
    const { token, task, bytes } = startChosen(state, worker.id, chosen, "assigned");
    const secret = poll.tokens[assigned.length];
    if (secret === undefined) throw new Error("There is a token for each task.");
    const now = state.clock.now();
    const { timeoutMs } = task.spec;
    state.workerAttempts.push({
      ...secret,
      worker: worker.id,
      tenant: task.tenant,
      taskId: task.id,
      seq: task.seq,
      token,
      number: task.attempts.length,
      claim: poll.claim,
      assignedAt: now,
      timesOutAt: timeoutMs === null ? null : now + timeoutMs,
      deadline: task.deadline,
      leaseMs: worker.leaseMs,
      named: false,
      missed: 0,
      recorded: false,
      usage: null,
      endedAt: null,
    });
    assigned.push({ token, nonce: secret.nonce, task, bytes, assignedAt: now });
  }

  /** Of the lanes with something to start: one with a critical task, else the one whose agent queue was served longest ago. */
  #nextLane() {
    const state = this.#state;
    const candidates = state.agentQueues
      .filter((agentQueue) => this.#takers(agentQueue).length > 0 && isStartable(state, agentQueue))
      .map((agentQueue) => ({ agentQueue, isCritical: isCritical(headOf(state, agentQueue)?.rank ?? 1) }))
      .sort(
        (a, b) =>
          Number(b.isCritical) - Number(a.isCritical) || a.agentQueue.lastServed - b.agentQueue.lastServed,
      );
    const [first] = candidates;
    return first && state.lanes.get(first.agentQueue.lane);
  }

  /** The polls that can take a task of an agent queue, in order. */
  #takers(agentQueue: OracleAgentQueue): OpenPoll[] {
    const state = this.#state;
    if (ableNodes(state, agentQueue).length > 0) return [];
    const held = (poll: OpenPoll) => heldBy(state, poll.worker.id).length;
    return this.#open
      .filter(({ poll, worker, assigned }) => {
        const holds = heldBy(state, worker.id);
        const max = Math.min(poll.max, poll.tokens.length) - assigned.length;
        if (Math.min(max, worker.slots - holds.length) <= 0) return false;
        if (poll.agents !== null && !poll.agents.includes(agentQueue.agent)) return false;
        if (poll.except?.includes(agentQueue.agent)) return false;
        if (holds.some(({ queueKind }) => isAloneKind(queueKind))) return false;
        if (isAloneKind(agentQueue.kind) && holds.length > 0) return false;
        return canWorkerRun(state, worker, agentQueue);
      })
      .sort((a, b) => held(a) - held(b));
  }
}

/** The attempts that an earlier call assigned to the same claim, and that are still held. */
function liveOf(state: OracleState, { worker, claim }: WorkerPoll): AssignedTask[] {
  return state.workerAttempts
    .filter((attempt) => attempt.worker === worker && attempt.claim === claim && isHeld(state, attempt))
    .map(({ token, nonce, seq, assignedAt }) => {
      const task = state.tasks.find((each) => each.seq === seq);
      if (task === undefined) throw new Error("A held attempt has a task.");
      const bytes = jsonWeight(JSON.stringify(task.spec));
      return { token, nonce, task: toRecord(task), bytes, assignedAt };
    });
}

function isStartable(state: OracleState, agentQueue: OracleAgentQueue): boolean {
  const lane = state.lanes.get(agentQueue.lane);
  return (
    lane !== undefined &&
    hasRoom(state, lane) &&
    headOf(state, agentQueue) !== undefined &&
    agentRoom(state, lane, agentQueue) > 0 &&
    tenantRoom(state, agentQueue.tenant) > 0 &&
    shareRoom(state, lane, agentQueue.tenant) > 0
  );
}

function headOf(state: OracleState, agentQueue: OracleAgentQueue): OracleTask | undefined {
  return state.tasks.filter((task) => isReady(task) && isOfAgentQueue(task, agentQueue)).sort(byRank)[0];
}

/** Whether tasks that these polls could run are ready, but cannot start. */
function isSomethingHeld(state: OracleState, polls: readonly WorkerPoll[]): boolean {
  return polls.some((poll) => {
    const worker = state.workers.get(poll.worker);
    if (worker === undefined || worker.lost || worker.draining) return false;
    return state.agentQueues.some(
      (agentQueue) =>
        headOf(state, agentQueue) !== undefined &&
        ableNodes(state, agentQueue).length === 0 &&
        canWorkerRun(state, worker, agentQueue) &&
        !isStartable(state, agentQueue),
    );
  });
}
