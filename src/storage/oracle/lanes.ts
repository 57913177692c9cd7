import type { Lane } from "../../model/lane.ts";
import type { LaneRecord } from "../storage.ts";
import { isWaiting, type OracleState, tell } from "./state.ts";

export function configureLanes(
  state: OracleState,
  { lanes }: { lanes: readonly Omit<Lane, "concurrency">[] },
): void {
  for (const { name, total, perAgent, strategy } of lanes) {
    const aheadStreak = state.lanes.get(name)?.aheadStreak ?? 0;
    state.lanes.set(name, { name, total, perAgent, strategy, aheadStreak });
  }
  tell(state, { kind: "work" });
}

export function listLanes(state: OracleState): LaneRecord[] {
  return [...state.lanes.values()].map(({ name, total, perAgent, strategy }) => {
    const tasks = state.tasks.filter((task) => task.lane === name);
    const inflight = tasks.filter((task) => task.held).length;
    return { name, total, perAgent, strategy, waiting: tasks.filter(isWaiting).length, inflight };
  });
}
