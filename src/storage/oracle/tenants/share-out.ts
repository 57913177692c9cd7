import {
  isOfLine,
  isReady,
  type OracleLane,
  type OracleLine,
  type OracleState,
  type OracleTenantLine,
} from "../state.ts";
import { agentRoom, shareRoom, tenantRoom } from "../tasks/room.ts";

/** A tenant that takes part when the slots of a lane are shared out. */
export interface Sharer {
  readonly line: OracleTenantLine;
  inflight: number;
  lastServed: number;
  owed: number;
  /** How many of its tasks could start if there were no other tenants. */
  left: number;
}

/** All tenants of a lane, the oldest first. `counts`: which agent queues count; `leftFor`: how many slots a tenant may take. */
export function sharersOf(
  state: OracleState,
  lane: OracleLane,
  counts: (line: OracleLine) => boolean,
  leftFor: (tenant: string) => number,
): Sharer[] {
  const lines = state.tenantLines.filter((line) => line.lane === lane.name);
  return lines.map((line) => ({
    line,
    inflight: state.tasks.filter(
      (task) => task.held !== null && task.lane === lane.name && task.tenant === line.tenant,
    ).length,
    lastServed: line.lastServed,
    owed: line.owed,
    left: Math.min(
      supplyOf(state, lane, line.tenant, counts),
      tenantRoom(state, line.tenant),
      shareRoom(state, lane, line.tenant),
      leftFor(line.tenant),
    ),
  }));
}

/**
 * The tenant whose turn it is: one with pre-emption credit, else the one with the fewest tasks in flight, and of these the one
 * served longest ago.
 */
export function nextSharer(sharers: readonly Sharer[]): Sharer | undefined {
  return sharers
    .filter(({ left }) => left > 0)
    .sort(
      (a, b) =>
        Number(b.owed > 0) - Number(a.owed > 0) || a.inflight - b.inflight || a.lastServed - b.lastServed,
    )[0];
}

/** How many of the next `slots` starts in a lane each tenant gets; see `sharersOf`. */
export function shareOut(
  state: OracleState,
  lane: OracleLane,
  slots: number,
  leftFor: (tenant: string) => number,
): Map<string, number> {
  const sharers = sharersOf(state, lane, ({ standing }) => standing === "executable", leftFor);
  const shares = new Map<string, number>();
  for (let turn = 1; turn <= slots; turn += 1) {
    const next = nextSharer(sharers);
    if (next === undefined) break;
    next.inflight += 1;
    next.lastServed = state.lastEventSeq + turn;
    next.owed = Math.max(next.owed - 1, 0);
    next.left -= 1;
    shares.set(next.line.tenant, (shares.get(next.line.tenant) ?? 0) + 1);
  }
  return shares;
}

/** How many tasks of a tenant its agents could start in a lane. */
function supplyOf(
  state: OracleState,
  lane: OracleLane,
  tenant: string,
  counts: (line: OracleLine) => boolean,
): number {
  return state.lines
    .filter((line) => line.lane === lane.name && line.tenant === tenant && counts(line))
    .map((line) => {
      const ready = state.tasks.filter((task) => isReady(task) && isOfLine(task, line));
      return Math.min(ready.length, agentRoom(state, lane, line));
    })
    .reduce((sum, room) => sum + room, 0);
}
