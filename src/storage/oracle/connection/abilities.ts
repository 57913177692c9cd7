import { type AgentName, agentKey, agentOfKey, DEFAULT_AGENT } from "../../../model/agent.ts";
import type { TaskKind } from "../../../model/task.ts";
import { aloneKindOf, heldKind, isAloneKind } from "../../alone-queue.ts";
import { type Abilities, ALL_AGENTS } from "../../storage.ts";
import {
  addAgentQueue,
  isOfAgentQueue,
  type OracleAgentQueue,
  type OracleState,
  type OracleTask,
  type OracleWorker,
} from "../state.ts";

/** Identifies an agent queue. */
export type AgentQueueName = Pick<OracleAgentQueue, "lane" | "tenant" | "agent" | "kind">;

/** Whether the agent has an executor of its own: on a live node, on a node that is away, on workers, or stored with the agent. */
export function isServed(state: OracleState, agent: AgentName): boolean {
  return (
    isServedByNodes(state, agent) ||
    liveNodes(state).some(({ abilities }) => abilities?.workerAgents?.includes(agent.agent)) ||
    isNamedByWorkers(state, agent)
  );
}

export function isKnown(state: OracleState, agent: AgentName): boolean {
  return (
    state.catalogue.has(agentKey(agent)) ||
    namings(state, agent.agent).length > 0 ||
    isNamedByWorkers(state, agent)
  );
}

function isServedByNodes(state: OracleState, agent: AgentName): boolean {
  return isStoredWithExecutor(state, agent) || namings(state, agent.agent).includes(true);
}

/** Whether a live worker of its tenant names the agent, or one that is gone did. */
function isNamedByWorkers(state: OracleState, agent: AgentName): boolean {
  return state.workerAgentsSeen.has(agentKey(agent)) || liveWorkersOf(state, agent).length > 0;
}

/** The live workers that name an agent. */
function liveWorkersOf(state: OracleState, { tenant, agent }: AgentName): OracleWorker[] {
  return liveWorkers(state).filter((worker) => worker.tenant === tenant && worker.agents.includes(agent));
}

function liveWorkers(state: OracleState): OracleWorker[] {
  return [...state.workers.values()].filter(({ lost }) => !lost);
}

/** Whether a live worker can run the tasks of an agent queue. No node can, then. */
export function isForWorkers(state: OracleState, agentQueue: AgentQueueName): boolean {
  if (ableNodes(state, agentQueue).length > 0) return false;
  return liveWorkers(state).some((worker) => canWorkerRun(state, worker, agentQueue));
}

/** Whether a worker can run the tasks of an agent queue that no node can execute. */
export function canWorkerRun(state: OracleState, worker: OracleWorker, agentQueue: AgentQueueName): boolean {
  if (worker.tenant !== agentQueue.tenant || !isOpenToWorkers(state, agentQueue)) return false;
  return worker.agents.includes(agentQueue.agent) || worker.agents.includes(ALL_AGENTS);
}

/** Whether workers may run an agent: its executor is `worker`, or it has none on any node, also if that is away. */
export function isOpenToWorkers(state: OracleState, agent: AgentName): boolean {
  return isWorkerAgent(state, agent) || !isServedByNodes(state, agent);
}

/** Whether the executor of an agent is `worker`. */
export function isWorkerAgent(state: OracleState, agent: AgentName): boolean {
  const executor = state.catalogue.get(agentKey(agent))?.definition["executor"] as
    | { type?: string }
    | undefined;
  if (executor !== undefined) return executor.type === "worker";
  return liveNodes(state).some(({ abilities }) => abilities?.workerAgents?.includes(agent.agent));
}

export function knownNames(
  state: OracleState,
  { tenant, limit }: { tenant: string; limit: number },
): string[] {
  const stored = [...state.catalogue.values()].filter((record) => record.tenant === tenant);
  const named = liveNodes(state).flatMap(({ abilities }) => [...(abilities?.agents.keys() ?? [])]);
  const ofWorkers = liveWorkers(state).filter((worker) => worker.tenant === tenant);
  const names = new Set([
    ...stored.map(({ agent }) => agent),
    ...named,
    ...state.agentsSeen.keys(),
    ...ofWorkers.flatMap(({ agents }) => agents.filter((agent) => agent !== ALL_AGENTS)),
    ...[...state.workerAgentsSeen.keys()]
      .map(agentOfKey)
      .flatMap((name) => (name.tenant === tenant ? name.agent : [])),
  ]);
  return [...names].sort().slice(0, limit);
}

/** Whether a node with these abilities can execute the tasks of an agent queue. */
export function canExecute(
  state: OracleState,
  abilities: Abilities | null,
  agentQueue: AgentQueueName,
): boolean {
  if (abilities === null || canOpen(state, abilities, agentQueue)) return true;
  if (isServed(state, agentQueue)) return abilities.agents.get(agentQueue.agent) ?? false;
  // If an agent is not served, its agent queue for all kinds only holds kinds that every node can execute.
  const kind = heldKind(agentQueue.kind ?? "");
  return kind === "" || abilities.kinds.includes(kind);
}

/** The live nodes that can execute the tasks of an agent queue. */
export function ableNodes(state: OracleState, agentQueue: AgentQueueName): string[] {
  const nodes = liveNodes(state).filter(({ abilities }) => canExecute(state, abilities, agentQueue));
  return nodes.map(({ node }) => node);
}

export function liveNodes(state: OracleState) {
  return [...state.nodes.values()].filter(({ dead }) => !dead);
}

/**
 * The only kind of tasks that an agent queue holds; null: it holds all. An agent that is not served has an agent queue of its own
 * for each kind that not every live node can execute, so that such tasks do not block others.
 */
function queueKindOf(state: OracleState, task: AgentName & Pick<OracleTask, "spec">): TaskKind | null {
  const { kind } = task.spec.work;
  return task.agent === DEFAULT_AGENT || state.commonKinds.has(kind) || isServed(state, task) ? null : kind;
}

/** The agent queue of a new task. Creates it for the first one. */
export function agentQueueFor(
  state: OracleState,
  task: Omit<AgentQueueName, "kind"> & Pick<OracleTask, "spec">,
): OracleAgentQueue {
  return ensureAgentQueue(state, { ...task, kind: queueKindOf(state, task) });
}

/** Moves a task to another agent queue, if its kind was common to all nodes, or its agent served, and no longer is. */
export function updateAgentQueue(state: OracleState, task: OracleTask): void {
  if (task.queueKind === null) task.queueKind = agentQueueFor(state, task).kind;
}

/** Moves a task to an agent queue whose tasks run alone. */
export function moveToAlone(state: OracleState, task: OracleTask): void {
  task.queueKind = ensureAgentQueue(state, {
    ...task,
    kind: aloneKindOf(task.agent, task.spec.work.kind),
  }).kind;
}

/** Every task refers to its agent queue, a rejected one too. So the queue is as old as the first of them. */
function ensureAgentQueue(state: OracleState, name: AgentQueueName): OracleAgentQueue {
  const known = state.agentQueues.find(
    (agentQueue) =>
      agentQueue.lane === name.lane &&
      agentQueue.kind === name.kind &&
      agentKey(agentQueue) === agentKey(name),
  );
  return known ?? addAgentQueue(state, name, standingOf(state, name));
}

export function standingOf(state: OracleState, agentQueue: AgentQueueName): OracleAgentQueue["standing"] {
  if (liveNodes(state).length === 0 || ableNodes(state, agentQueue).length > 0)
    return isAloneKind(agentQueue.kind) ? "alone" : "executable";
  return isServed(state, agentQueue) || isForWorkers(state, agentQueue) ? "away" : "unserved";
}

/** Remembers the agents that a node named, for when it is gone. */
export function rememberAgents(state: OracleState, abilities: Abilities | null): void {
  const at = state.clock.now();
  for (const [agent, serves] of abilities?.agents ?? []) {
    state.agentsSeen.set(agent, { serves: serves || (state.agentsSeen.get(agent)?.serves ?? false), at });
  }
}

/** A node that names an agent but has no executor for it needs none: nodes that are gone then no longer count as serving it. */
export function endMemory(state: OracleState, abilities: Abilities | null): void {
  for (const [agent, serves] of abilities?.agents ?? []) {
    const seen = state.agentsSeen.get(agent);
    if (!serves && seen !== undefined) state.agentsSeen.set(agent, { ...seen, serves: false });
  }
}

/** Whether it will fail unless a node with an executor for its kind joins. */
export function isUnserved(state: OracleState, task: OracleTask): boolean {
  return state.agentQueues.some(
    (agentQueue) => agentQueue.standing === "unserved" && isOfAgentQueue(task, agentQueue),
  );
}

/** Whether an agent is stored with an executor that a node with these abilities can unseal. */
function canOpen(state: OracleState, { keys = [] }: Abilities, agent: AgentName): boolean {
  const key = state.catalogue.get(agentKey(agent))?.definition["sealedWith"];
  if (isWorkerAgent(state, agent)) return false;
  return isStoredWithExecutor(state, agent) && (key === undefined || keys.includes(key as string));
}

function isStoredWithExecutor(state: OracleState, agent: AgentName): boolean {
  return state.catalogue.get(agentKey(agent))?.definition["executor"] !== undefined;
}

/** For each live node that names an agent, and for those that are gone: whether it serves the agent. */
function namings(state: OracleState, agent: string): boolean[] {
  const live = liveNodes(state).flatMap(({ abilities }) => abilities?.agents.get(agent) ?? []);
  const seen = state.agentsSeen.get(agent);
  return seen === undefined ? live : [...live, seen.serves];
}
