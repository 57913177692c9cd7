import type { Settlement } from "../../../model/outcome.ts";
import { FRONT_RANK, rankOf } from "../../../model/priority.ts";
import { jsonWeight } from "../../../model/text/json-weight.ts";
import { isAloneKind } from "../../alone-queue.ts";
import {
  type Abilities,
  type AttemptUsage,
  type Claim,
  type ClaimedTask,
  EXPIRED_PER_CLAIM_MAX,
  type FinishAndClaimParams,
  type FinishedAndClaimed,
  type Held,
} from "../../storage.ts";
import { canExecute } from "../connection/abilities.ts";
import { addEvent } from "../log/add-event.ts";
import {
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
import { type Chosen, chooseAlone, chooseTask } from "./claim-tasks.ts";
import { isAnyKeyWanted, passKeysOn } from "./concurrency-keys.ts";
import { endTask, failTask } from "./end-task.ts";
import { expireOverdue } from "./expire-tasks.ts";
import { preempt } from "./preempt-tasks.ts";
import { hasRoom, leftOnNode } from "./room.ts";
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
  const finished: { token: number; state: OracleTask["state"] }[] = [];
  for (const finish of finishes) {
    const task = findHeld(state, node, finish);
    if (task === undefined) continue;
    if (finish.usage !== undefined) addUsage(state, task, finish.usage);
    task.summary = finish.summary ?? null;
    applySettlement(state, task, finish.settlement);
    finished.push({ token: finish.token, state: task.state });
  }
  const expired = expireOverdue(state, { limit: claims.length > 0 ? EXPIRED_PER_CLAIM_MAX : 0 });
  settleMoves(state);
  const claimed: ClaimedTask[] = [];
  for (const claim of claims) {
    const limit = Math.min(claim.limit, (params.claimsMax ?? Number.POSITIVE_INFINITY) - claimed.length);
    const asked = { ...record, claim: { ...claim, limit }, hasEnded: finished.length > 0 };
    claimed.push(...claimFromLane(state, asked));
  }
  preempt(state);
  // A start may keep the holder of a key from starting. Another task could then get the key, in a lane claimed from earlier.
  if (claimed.length > 0 && isAnyKeyWanted(state)) signal(state, { kind: "work" });
  if (finished.length + claimed.length + expired.length + progress.length > 0)
    signal(state, { kind: "events" });
  if (finished.some((finish) => finish.state === "delayed")) signal(state, { kind: "due" });
  return { finished, claimed, expired };
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
  const claimed = chosen === undefined ? [] : [startChosen(state, node, chosen)];
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

export function addUsage(state: OracleState, task: OracleTask, usage: AttemptUsage): void {
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

export function applySettlement(state: OracleState, task: OracleTask, settlement: Settlement): void {
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
  {
    node,
    abilities,
    claim: { lane: name, limit, perTenant },
    hasEnded,
  }: { node: string; abilities: Abilities | null; claim: Claim; hasEnded: boolean },
): ClaimedTask[] {
  const lane = state.lanes.get(name);
  if (lane === undefined) return [];
  const claimed: ClaimedTask[] = [];
  const leftFor = (tenant: string) =>
    leftOnNode(state, perTenant, tenant) - claimed.filter(({ task }) => task.tenant === tenant).length;
  // If every slot is always busy, no claim finds one left. So keys are also passed on whenever an attempt has ended.
  if (hasEnded && limit > 0) passKeysOn(state, lane, leftFor);
  const isExecutable = (agentQueue: OracleAgentQueue) =>
    !isAloneKind(agentQueue.kind) && canExecute(state, abilities, agentQueue);
  while (claimed.length < limit && hasRoom(state, lane)) {
    const choose = () => chooseTask(state, lane, isExecutable, leftFor);
    const chosen = choose() ?? (passKeysOn(state, lane, leftFor) ? choose() : undefined);
    if (chosen === undefined) break;
    claimed.push(startChosen(state, node, chosen));
  }
  return claimed;
}

export function startChosen(
  state: OracleState,
  node: string,
  { head, agentQueue, tenantQueue }: Chosen,
): ClaimedTask {
  const token = startTask(state, node, head);
  agentQueue.lastServed = token;
  tenantQueue.lastServed = token;
  const task = toRecord(head);
  return { token, task, bytes: jsonWeight(JSON.stringify(task.spec)) };
}

function startTask(state: OracleState, node: string, task: OracleTask): number {
  const now = state.clock.now();
  const number = task.attempts.length + 1;
  const token = addEvent(state, "task.started", task, { attempt: number });
  task.state = "running";
  task.startedAt ??= now;
  task.held = { node, token };
  task.attempts.push({ number, startedAt: now, endedAt: null, outcome: null, error: null, node });
  return token;
}
