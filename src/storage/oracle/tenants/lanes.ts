import type { Lane } from "../../../model/lane.ts";
import { FRONT_RANK, rankOf } from "../../../model/priority.ts";
import type { EndedTask, LaneRecord, LaneSetting } from "../../storage.ts";
import { isReady, isWaiting, type OracleState, signal } from "../state.ts";
import { cancelThese } from "../tasks/cancel-tasks.ts";
import { preempt } from "../tasks/preempt-tasks.ts";

export function configureLanes(
  state: OracleState,
  { lanes }: { lanes: readonly Omit<Lane, "concurrency">[] },
): void {
  for (const { name, total, perAgent, perTenant, strategy, agingMs } of lanes) {
    const before = state.lanes.get(name);
    state.lanes.set(name, { name, total, perAgent, perTenant, strategy, agingMs });
    if (before !== undefined && before.agingMs !== agingMs) putInOrder(state, name, agingMs);
    state.lanesToRecheck.add(name);
  }
  preempt(state);
  signal(state, { kind: "work" });
}

/** Ranks tasks by the new ageing. Pre-empted tasks stay in front. */
function putInOrder(state: OracleState, lane: string, agingMs: number): void {
  for (const task of state.tasks) {
    if (task.lane === lane && task.rank !== FRONT_RANK) task.rank = rankOf(task, agingMs);
  }
}

export function listLanes(state: OracleState): LaneRecord[] {
  return [...state.lanes.values()].map(({ name, total, perAgent, perTenant, strategy, agingMs }) => {
    const tasks = state.tasks.filter((task) => task.lane === name);
    const ready = tasks.filter(isReady);
    const oldestAt = ready.length === 0 ? null : Math.min(...ready.map(({ createdAt }) => createdAt));
    const inflight = tasks.filter((task) => task.held).length;
    return {
      name,
      total,
      perAgent,
      perTenant,
      strategy,
      agingMs,
      waiting: tasks.filter(isWaiting).length,
      inflight,
      running: tasks.filter(({ state }) => state === "running").length,
      oldestAt,
    };
  });
}

export function putLane(state: OracleState, setting: LaneSetting): void {
  state.laneSettings.set(setting.name, setting);
  signal(state, { kind: "lanes" });
}

export function laneSettings(state: OracleState): LaneSetting[] {
  return [...state.laneSettings.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

export function clearLane(
  state: OracleState,
  params: { tenant: string; name: string; error: string; limit: number; cutoff?: number },
): { cancelled: readonly EndedTask[]; more: boolean; cutoff: number } {
  const { tenant, name, error, limit, cutoff = state.lastTaskSeq } = params;
  const waiting = state.tasks.filter(
    (task) => task.tenant === tenant && task.lane === name && isWaiting(task) && task.seq <= cutoff,
  );
  const cancelled = cancelThese(state, waiting.slice(0, limit), error);
  return { cancelled, more: waiting.length > limit, cutoff };
}
