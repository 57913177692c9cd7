import { AHEAD_STREAK_MAX, isCritical } from "../../model/priority.ts";
import {
  agentKey,
  byRank,
  isReady,
  isSameAgent,
  type OracleLane,
  type OracleLine,
  type OracleState,
  type OracleTask,
} from "./state.ts";

interface Candidate {
  readonly line: OracleLine;
  /** The first of its queued tasks. */
  readonly head: OracleTask;
  readonly inflight: number;
}

/** The one task that starts next in this lane, its line marked; undefined when nothing there may start. */
export function chooseTask(state: OracleState, lane: OracleLane): Candidate | undefined {
  const candidates = state.lines
    .filter((line) => line.lane === lane.name)
    .map((line) => startable(state, lane, line))
    .filter((candidate) => candidate !== undefined);
  if (lane.strategy === "priority-fifo") return first(candidates, byHead);

  const criticals = candidates.filter(({ head }) => isCritical(head.rank));
  const mayGoAhead = criticals.length > 0 && lane.aheadStreak < AHEAD_STREAK_MAX;
  const chosen = mayGoAhead ? first(criticals, byHead) : first(candidates, byFairness);
  if (chosen !== undefined) lane.aheadStreak = mayGoAhead ? lane.aheadStreak + 1 : 0;
  return chosen;
}

/** A line may start its head while neither its limit in this lane nor its agent's over all lanes is reached. */
function startable(state: OracleState, lane: OracleLane, line: OracleLine): Candidate | undefined {
  const ofAgent = state.tasks.filter((task) => isSameAgent(task, line));
  const ofLine = ofAgent.filter((task) => task.lane === line.lane);
  const head = first(ofLine.filter(isReady), byRank);
  const inflight = ofLine.filter((task) => task.held).length;
  if (head === undefined) return undefined;
  if (lane.perAgent !== null && inflight >= lane.perAgent) return undefined;
  const maxInflight = state.agentLimits.get(agentKey(line)) ?? null;
  if (maxInflight !== null && ofAgent.filter((task) => task.held).length >= maxInflight) return undefined;
  return { line, head, inflight };
}

function byHead(a: Candidate, b: Candidate): number {
  return byRank(a.head, b.head);
}

function byFairness(a: Candidate, b: Candidate): number {
  return a.inflight - b.inflight || a.line.lastServed - b.line.lastServed;
}

/** The smallest; of equals the one that stands first, which among lines is the oldest. */
function first<T>(items: readonly T[], compare: (a: T, b: T) => number): T | undefined {
  return [...items].sort(compare)[0];
}
