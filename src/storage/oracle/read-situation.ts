import { AHEAD_MAX, type TaskSituation } from "../storage.ts";
import { agentKey, findTask, isSameAgent, type OracleState, toRecord } from "./state.ts";

export function readSituation(
  state: OracleState,
  params: { tenant: string; id: string },
): TaskSituation | null {
  const task = findTask(state, params);
  if (task === undefined) return null;
  const inLane = state.tasks.filter(({ lane }) => lane === task.lane);
  const ofAgent = state.tasks.filter((other) => isSameAgent(other, task));
  const ahead = inLane
    .filter((other) => task.state === "queued" && other.state === "queued" && isSameAgent(other, task))
    .sort((a, b) => a.priority - b.priority || a.seq - b.seq);
  const before = ahead.slice(0, Math.max(ahead.indexOf(task), 0)).map(({ id }) => id);
  const parents = state.tasks.filter(
    (parent) => parent.tenant === task.tenant && parent.seq < task.seq && task.dependsOn.includes(parent.id),
  );
  const lane = state.lanes.get(task.lane);
  return {
    task: toRecord(task),
    lane: {
      inflight: inLane.filter(({ held }) => held !== null).length,
      total: lane?.total ?? null,
      perAgent: lane?.perAgent ?? null,
    },
    agent: {
      inLane: inLane.filter((other) => other.held !== null && isSameAgent(other, task)).length,
      inflight: ofAgent.filter(({ held }) => held !== null).length,
      max: state.agentLimits.get(agentKey(task)) ?? null,
    },
    ahead: { ids: before.slice(0, AHEAD_MAX.named), count: Math.min(before.length, AHEAD_MAX.counted) },
    parents: task.state === "rejected" ? [] : parents.map(({ id, state: found }) => ({ id, state: found })),
  };
}
