import type { Settlement } from "../../../model/outcome.ts";
import { FRONT_RANK, isCritical, rankOf } from "../../../model/priority.ts";
import type { HeldState } from "../../../model/task-state.ts";
import { jsonWeight } from "../../../model/text/json-weight.ts";
import { isAloneKind } from "../../alone-queue.ts";
import {
  type Abilities,
  type AttemptUsage,
  type BegunAttempt,
  type Claim,
  type ClaimedTask,
  EXPIRED_PER_CLAIM_MAX,
  type FinishAndClaimParams,
  type FinishedAndClaimed,
  type FinishedAttempt,
  type Held,
} from "../../storage.ts";
import { canExecute } from "../connection/abilities.ts";
import { addEvent, takeEventNumber } from "../log/add-event.ts";
import {
  agentQueueOf,
  askForKey,
  copyJson,
  endAttempt,
  isOfAgentQueue,
  isReady,
  type OracleAgentQueue,
  type OracleState,
  type OracleTask,
  sessionOf,
  signal,
  toRecord,
} from "../state.ts";
import { type Chosen, chooseAlone, chooseTask, peekTask } from "./claim-tasks.ts";
import { isAnyKeyWanted, passKeysOn } from "./concurrency-keys.ts";
import { endTask, failTask } from "./end-task.ts";
import { expireOverdue } from "./expire-tasks.ts";
import { preempt } from "./preempt-tasks.ts";
import { agentRoom, hasRoom, leftOnNode, shareRoom, tenantRoom } from "./room.ts";
import { settleMoves } from "./settle-moves.ts";

export function finishAndClaim(state: OracleState, params: FinishAndClaimParams): FinishedAndClaimed {
  const { node, progress, finishes, claims } = params;
  const record = state.nodes.get(node);
  if (record === undefined || record.dead) return { finished: [], claimed: [], expired: [] };

  for (const report of progress) {
    const task = findHeld(state, node, report);
    if (task)
      addEvent(state, "task.progress", task, { progress: report.progress, attempt: task.attempts.length });
  }
  for (const begun of params.begun ?? []) beginHeld(state, node, begun);
  const finished = finishHeld(state, node, finishes);
  const expired = expireOverdue(state, { limit: claims.length > 0 ? EXPIRED_PER_CLAIM_MAX : 0 });
  settleMoves(state);
  const claimed: ClaimedTask[] = [];
  const criticalWaits: string[] = [];
  for (const claim of claims) {
    const left = () => (params.claimsMax ?? Number.POSITIVE_INFINITY) - claimed.length;
    const asked = { ...record, claim, hasEnded: finished.length > 0 };
    const now = claimFromLane(state, { ...asked, claim: { ...claim, limit: Math.min(claim.limit, left()) } });
    claimed.push(...now);
    if (claim.ahead === undefined) continue;
    if (isCriticalLeft(state, claim.lane)) criticalWaits.push(claim.lane);
    else claimed.push(...claimAhead(state, asked, { limit: Math.min(claim.ahead, left()), claimedNow: now }));
  }
  preempt(state);
  // A start may keep the holder of a key from starting. Another task could then get the key, in a lane claimed from earlier.
  if (claimed.length > 0 && isAnyKeyWanted(state)) signal(state, { kind: "work" });
  if (finished.length + claimed.length + expired.length + progress.length + (params.begun?.length ?? 0) > 0)
    signal(state, { kind: "events" });
  if (finished.some((finish) => finish.state === "delayed")) signal(state, { kind: "due" });
  return { finished, claimed, expired, ...(criticalWaits.length > 0 && { criticalWaits }) };
}

/** The holder of an assigned attempt has begun with it, if it still holds it. */
export function beginHeld(state: OracleState, node: string, begun: BegunAttempt): void {
  const task = findHeld(state, node, begun);
  if (task?.state !== "assigned") return;
  beginAttempt(state, task, begun.startedAt);
  // A critical task that waits may pre-empt it from now on.
  if (task.preemptionsLeft > 0 && !isCritical(task.priority)) state.lanesToRecheck.add(task.lane);
}

/** Ends the attempts that are still held. */
export function finishHeld(
  state: OracleState,
  node: string,
  finishes: readonly FinishedAttempt[],
): { token: number; state: OracleTask["state"] }[] {
  const firstEnds = finishes.filter(
    ({ token }, index) => finishes.findIndex((other) => other.token === token) === index,
  );
  for (const finish of firstEnds) {
    const task = findHeld(state, node, finish);
    if (task?.state === "assigned" && finish.settlement.to !== "queued") beginAttempt(state, task);
  }
  const finished: { token: number; state: OracleTask["state"] }[] = [];
  for (const finish of firstEnds) {
    const task = findHeld(state, node, finish);
    if (task === undefined) continue;
    if (finish.usage !== undefined) addUsage(state, task, finish.usage);
    task.summary = finish.summary ?? null;
    applySettlement(state, task, finish.settlement);
    finished.push({ token: finish.token, state: task.state });
  }
  return finished;
}

export function claimAlone(
  state: OracleState,
  { node, lanes }: { node: string; lanes: readonly string[] },
): FinishedAndClaimed {
  const record = state.nodes.get(node);
  if (record === undefined || record.dead) return { finished: [], claimed: [], expired: [] };
  const expired = expireOverdue(state, { limit: EXPIRED_PER_CLAIM_MAX });
  settleMoves(state);
  const open = lanes.flatMap((name) => state.lanes.get(name) ?? []).filter((lane) => hasRoom(state, lane));
  const chosen = chooseAlone(state, open, record.abilities);
  const claimed = chosen === undefined ? [] : [startChosen(state, node, chosen, "running")];
  preempt(state);
  if (claimed.length + expired.length > 0) signal(state, { kind: "events" });
  return { finished: [], claimed, expired };
}

export function isAloneWaiting(
  state: OracleState,
  { node, lanes }: { node: string; lanes: readonly string[] },
): boolean {
  const record = state.nodes.get(node);
  if (record === undefined || record.dead) return false;
  return state.agentQueues.some(
    (agentQueue) =>
      lanes.includes(agentQueue.lane) &&
      isAloneKind(agentQueue.kind) &&
      canExecute(state, record.abilities, agentQueue) &&
      !state.tenants.get(agentQueue.tenant)?.disabled &&
      state.tasks.some((task) => isReady(task) && isOfAgentQueue(task, agentQueue)),
  );
}

function addUsage(state: OracleState, task: OracleTask, usage: AttemptUsage): void {
  const { contextTokens, ...cost } = usage;
  task.usage = {
    ...task.usage,
    ...cost,
    inputTokens: (task.usage?.inputTokens ?? 0) + usage.inputTokens,
    outputTokens: (task.usage?.outputTokens ?? 0) + usage.outputTokens,
  };
  const session = sessionOf(state, task);
  if (session === undefined) return;
  session.tokens = contextTokens ?? session.tokens;
  session.contextWindow = usage.contextWindow ?? session.contextWindow;
}

export function findHeld(state: OracleState, node: string, { seq, token }: Held): OracleTask | undefined {
  const task = state.tasks.find((candidate) => candidate.seq === seq);
  return task?.held?.token === token && task.held.node === node ? task : undefined;
}

function applySettlement(state: OracleState, task: OracleTask, settlement: Settlement): void {
  const attempt = task.attempts.length;
  switch (settlement.to) {
    case "done":
      endAttempt(state, task, "done", null);
      endTask(state, task, "done", null);
      // A task that is done has a result: null if the executor returned none.
      task.result = copyJson(settlement.result ?? null);
      addEvent(state, "task.completed", task, null);
      return;
    case "failed":
      endAttempt(state, task, "failed", settlement.error);
      failTask(state, task, settlement.error);
      return;
    case "delayed": {
      const { error, runAt } = settlement;
      endAttempt(state, task, "failed", error);
      task.state = "delayed";
      if (task.rank === FRONT_RANK) task.rank = rankOf(task, state.lanes.get(task.lane)?.agingMs ?? 0);
      task.runAt = runAt;
      task.retryCount += 1;
      addEvent(state, "task.retrying", task, { attempt, error, retryAt: runAt, state: "delayed" });
      return;
    }
    case "queued": {
      const { error } = settlement;
      endAttempt(state, task, "interrupted", error);
      askForKey(state, task);
      addEvent(state, "task.retrying", task, { attempt, error, retryAt: state.clock.now(), state: "queued" });
      return;
    }
  }
}

function claimFromLane(
  state: OracleState,
  { node, abilities, claim: { lane: name, limit, perTenant, state: claimedAs = "running" }, hasEnded }: Asked,
): ClaimedTask[] {
  const lane = state.lanes.get(name);
  if (lane === undefined) return [];
  const claimed: ClaimedTask[] = [];
  const leftFor = (tenant: string) =>
    leftOnNode(state, perTenant, tenant) - claimed.filter(({ task }) => task.tenant === tenant).length;
  // If every slot is always busy, no claim finds one left. So keys are also passed on whenever an attempt has ended.
  if (hasEnded && limit > 0) passKeysOn(state, lane, leftFor);
  const isExecutable = executableBy(state, abilities);
  while (claimed.length < limit && hasRoom(state, lane)) {
    const choose = () => chooseTask(state, lane, isExecutable, leftFor);
    const chosen = choose() ?? (passKeysOn(state, lane, leftFor) ? choose() : undefined);
    if (chosen === undefined) break;
    claimed.push(startChosen(state, node, chosen, claimedAs));
  }
  return claimed;
}

/** Which agent queues an ordinary claim of a node with these abilities takes from. */
function executableBy(state: OracleState, abilities: Abilities | null) {
  return (agentQueue: OracleAgentQueue) =>
    !isAloneKind(agentQueue.kind) && canExecute(state, abilities, agentQueue);
}

interface Asked {
  readonly node: string;
  readonly abilities: Abilities | null;
  readonly claim: Claim;
  readonly hasEnded: boolean;
}

/** Claims for slots that are not free yet, up to the first task that may not wait on a node. */
function claimAhead(
  state: OracleState,
  { node, abilities, claim: { lane: name, perTenant } }: Asked,
  { limit, claimedNow }: { limit: number; claimedNow: readonly ClaimedTask[] },
): ClaimedTask[] {
  const lane = state.lanes.get(name);
  if (lane === undefined || lane.strategy !== "fair-fifo") return [];
  const claimed: ClaimedTask[] = [];
  const leftFor = (tenant: string) =>
    leftOnNode(state, perTenant, tenant) -
    [...claimedNow, ...claimed].filter(({ task }) => task.tenant === tenant).length;
  const isExecutable = executableBy(state, abilities);
  while (claimed.length < limit && hasRoom(state, lane)) {
    const next = peekTask(state, lane, isExecutable, leftFor);
    if (next === undefined || !mayBeHeld(state, next.head)) break;
    const chosen = chooseTask(state, lane, isExecutable, leftFor);
    if (chosen !== undefined) claimed.push(startChosen(state, node, chosen, "assigned"));
  }
  return claimed;
}

function mayBeHeld(state: OracleState, task: OracleTask): boolean {
  return (
    !isCritical(task.rank) &&
    task.session === null &&
    task.concurrencyKey === null &&
    (state.batches.find(({ id }) => id === task.batch)?.parallelism ?? null) === null &&
    task.attempts.length === 0 &&
    task.maxRetriesIfLost > 0
  );
}

/** Whether a critical task of this lane only lacks a slot. */
function isCriticalLeft(state: OracleState, name: string): boolean {
  const lane = state.lanes.get(name);
  if (lane === undefined || lane.strategy !== "fair-fifo") return false;
  return state.tasks.some(
    (task) =>
      task.lane === name &&
      isReady(task) &&
      isCritical(task.rank) &&
      agentQueueOf(state, task).standing === "executable" &&
      agentRoom(state, lane, task) > 0 &&
      tenantRoom(state, task.tenant) > 0 &&
      shareRoom(state, lane, task.tenant) > 0,
  );
}

export function startChosen(
  state: OracleState,
  node: string,
  { head, agentQueue, tenantQueue }: Chosen,
  claimedAs: HeldState,
): ClaimedTask {
  const token = startTask(state, node, head, claimedAs);
  agentQueue.lastServed = token;
  tenantQueue.lastServed = token;
  const task = toRecord(head);
  return { token, task, bytes: jsonWeight(JSON.stringify(task.spec)) };
}

function startTask(state: OracleState, node: string, task: OracleTask, claimedAs: HeldState): number {
  const now = state.clock.now();
  const number = task.attempts.length + 1;
  task.attempts.push({ number, startedAt: now, endedAt: null, outcome: null, error: null, node });
  task.state = claimedAs;
  const token = claimedAs === "running" ? addStart(state, task) : takeEventNumber(state);
  task.held = { node, token };
  return token;
}

/** The holder of an assigned attempt has begun with it. */
function beginAttempt(state: OracleState, task: OracleTask, startedAt?: number): void {
  const attempt = task.attempts.at(-1);
  if (attempt === undefined) throw new Error("An assigned task has an attempt.");
  if (startedAt !== undefined)
    attempt.startedAt = Math.max(Math.min(startedAt, state.clock.now()), attempt.startedAt);
  task.state = "running";
  addStart(state, task);
}

function addStart(state: OracleState, task: OracleTask): number {
  const { number, startedAt } = task.attempts.at(-1) ?? { number: 1, startedAt: state.clock.now() };
  task.startedAt ??= startedAt;
  return addEvent(state, "task.started", task, { attempt: number });
}
