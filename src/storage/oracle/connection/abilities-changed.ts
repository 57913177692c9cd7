import { isCritical } from "../../../model/priority.ts";
import { TASK_KINDS } from "../../../model/task.ts";
import { isTerminal } from "../../../model/task-state.ts";
import { AGENT_MEMORY_MS } from "../../storage.ts";
import { agentQueueOf, byRank, isReady, type OracleState, type OracleTask, signal } from "../state.ts";
import { preempt } from "../tasks/preempt-tasks.ts";
import { isUnserved, liveNodes, standingOf, updateAgentQueue } from "./abilities.ts";

/** Updates agent queues after a node has joined, left or changed, or a stored agent has changed. */
export function abilitiesChanged(state: OracleState): void {
  const nodes = liveNodes(state);
  if (nodes.length === 0) return;
  const common = TASK_KINDS.filter((kind) =>
    nodes.every(({ abilities }) => abilities?.kinds.includes(kind) ?? true),
  );
  state.commonKinds = new Set(common);
  const moved = state.tasks.filter((task) => {
    const before = task.queueKind;
    if (!isTerminal(task.state)) updateAgentQueue(state, task);
    return task.queueKind !== before;
  });
  state.newCriticalTasks.push(...firstCriticals(state, moved));
  for (const agentQueue of state.agentQueues) {
    const standing = standingOf(state, agentQueue);
    if (standing !== agentQueue.standing && standing === "executable")
      state.lanesToRecheck.add(agentQueue.lane);
    agentQueue.standing = standing;
  }
  for (const task of state.tasks) if (!isUnserved(state, task)) task.unservedAt = null;
  preempt(state);
  signal(state, { kind: "work" });
}

/**
 * The first critical task of each agent queue to which these tasks moved: fewer nodes can execute it than before, so it may have
 * lost the slot that it waits for.
 */
function firstCriticals(state: OracleState, moved: readonly OracleTask[]): OracleTask[] {
  const criticals = moved.filter((task) => isReady(task) && isCritical(task.rank)).sort(byRank);
  return [...Map.groupBy(criticals, (task) => agentQueueOf(state, task)).values()].flatMap(
    ([first]) => first ?? [],
  );
}

/** Forgets agents that no node has named for `AGENT_MEMORY_MS`. */
export function forgetAgents(state: OracleState): void {
  const before = state.clock.now() - AGENT_MEMORY_MS;
  const old = [...state.agentsSeen].filter(([, { at }]) => at <= before);
  for (const [agent] of old) state.agentsSeen.delete(agent);
  const ofWorkers = [...state.workerAgentsSeen].filter(([, at]) => at <= before);
  for (const [agent] of ofWorkers) state.workerAgentsSeen.delete(agent);
  if (old.length + ofWorkers.length > 0) abilitiesChanged(state);
}
