import type { Lane } from "../../model/lane.ts";
import { FRONT_RANK, rankOf } from "../../model/priority.ts";
import type { LaneRecord } from "../storage.ts";
import { preempt } from "./preempt-tasks.ts";
import { isWaiting, type OracleState, tell } from "./state.ts";

export function configureLanes(
  state: OracleState,
  { lanes }: { lanes: readonly Omit<Lane, "concurrency">[] },
): void {
  for (const { name, total, perAgent, strategy, agingMs } of lanes) {
    const before = state.lanes.get(name);
    state.lanes.set(name, {
      name,
      total,
      perAgent,
      strategy,
      agingMs,
      aheadStreak: before?.aheadStreak ?? 0,
    });
    if (before !== undefined && before.agingMs !== agingMs) putInOrder(state, name, agingMs);
    state.shaken.add(name);
  }
  preempt(state);
  tell(state, { kind: "work" });
}

/** Those that wait are put in the order of the new ageing; who had to give way stays in front. */
function putInOrder(state: OracleState, lane: string, agingMs: number): void {
  for (const task of state.tasks) {
    if (task.lane === lane && task.rank !== FRONT_RANK) task.rank = rankOf(task, agingMs);
  }
}

export function listLanes(state: OracleState): LaneRecord[] {
  return [...state.lanes.values()].map(({ name, total, perAgent, strategy, agingMs }) => {
    const tasks = state.tasks.filter((task) => task.lane === name);
    const inflight = tasks.filter((task) => task.held).length;
    return { name, total, perAgent, strategy, agingMs, waiting: tasks.filter(isWaiting).length, inflight };
  });
}
