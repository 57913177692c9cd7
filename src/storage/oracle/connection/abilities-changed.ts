import { TASK_KINDS } from "../../../model/task.ts";
import { isTerminal } from "../../../model/task-state.ts";
import { AGENT_MEMORY_MS } from "../../storage.ts";
import { type OracleState, signal } from "../state.ts";
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
  for (const task of state.tasks) if (!isTerminal(task.state)) updateAgentQueue(state, task);
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

/** Forgets agents that no node has named for `AGENT_MEMORY_MS`. */
export function forgetAgents(state: OracleState): void {
  const before = state.clock.now() - AGENT_MEMORY_MS;
  const old = [...state.agentsSeen].filter(([, { at }]) => at <= before);
  for (const [agent] of old) state.agentsSeen.delete(agent);
  const ofWorkers = [...state.workerAgentsSeen].filter(([, at]) => at <= before);
  for (const [agent] of ofWorkers) state.workerAgentsSeen.delete(agent);
  if (old.length + ofWorkers.length > 0) abilitiesChanged(state);
}
