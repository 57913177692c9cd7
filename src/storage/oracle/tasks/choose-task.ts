import { CONSECUTIVE_CRITICAL_MAX, isCritical } from "../../../model/priority.ts";
import { isAloneKind } from "../../alone-line.ts";
import type { Abilities } from "../../storage.ts";
import { canExecute } from "../connection/abilities.ts";
import {
  byRank,
  isOfLine,
  isReady,
  type OracleLane,
  type OracleLine,
  type OracleState,
  type OracleTask,
  type OracleTenantLine,
} from "../state.ts";
import { nextSharer, sharersOf } from "../tenants/share-out.ts";
import { agentRoom, tenantRoom } from "./room.ts";

interface Candidate {
  readonly line: OracleLine;
  /** The first of its queued tasks. */
  readonly head: OracleTask;
  readonly inflight: number;
}

export interface Chosen extends Candidate {
  readonly tenantLine: OracleTenantLine;
}

/**
 * The next task to start in this lane, with its tenant, which uses up one pre-emption credit if it has any. Undefined if no task
 * may start. `leftFor`: how many slots of the lane a tenant may still take.
 */
export function chooseTask(
  state: OracleState,
  lane: OracleLane,
  abilities: Abilities | null,
  leftFor: (tenant: string) => number,
): Chosen | undefined {
  const isExecutable = (line: OracleLine) => !isAloneKind(line.kind) && canExecute(state, abilities, line);
  const tenantLine = nextSharer(sharersOf(state, lane, isExecutable, leftFor))?.line;
  if (tenantLine === undefined) return undefined;
  const candidates = state.lines
    .filter((line) => line.lane === lane.name && line.tenant === tenantLine.tenant && isExecutable(line))
    .map((line) => startable(state, lane, line))
    .filter((candidate) => candidate !== undefined);
  const chosen = chooseOfTenant(lane, tenantLine, candidates);
  if (chosen === undefined) throw new Error("Whose turn it is has something to start.");
  tenantLine.owed = Math.max(tenantLine.owed - 1, 0);
  return { ...chosen, tenantLine };
}

/** The next task to start on a node that runs nothing else, of those that run alone. */
export function chooseAlone(
  state: OracleState,
  lanes: readonly OracleLane[],
  abilities: Abilities | null,
): Chosen | undefined {
  const candidates = lanes.flatMap((lane) =>
    state.lines
      .filter(({ lane: name, kind }) => name === lane.name && isAloneKind(kind))
      .filter((line) => canExecute(state, abilities, line) && tenantRoom(state, line.tenant) > 0)
      .flatMap((line) => startable(state, lane, line) ?? []),
  );
  const order = (line: OracleLine) => state.lines.indexOf(line);
  const chosen = first(
    candidates,
    (a, b) => a.line.lastServed - b.line.lastServed || order(a.line) - order(b.line),
  );
  const tenantLine = state.tenantLines.find(
    ({ lane, tenant }) => lane === chosen?.line.lane && tenant === chosen.line.tenant,
  );
  if (chosen === undefined || tenantLine === undefined) return undefined;
  tenantLine.owed = Math.max(tenantLine.owed - 1, 0);
  return { ...chosen, tenantLine };
}

function chooseOfTenant(
  lane: OracleLane,
  tenantLine: OracleTenantLine,
  candidates: readonly Candidate[],
): Candidate | undefined {
  if (lane.strategy === "priority-fifo") return first(candidates, byHead);
  const criticals = candidates.filter(({ head }) => isCritical(head.rank));
  const mayGoAhead = criticals.length > 0 && tenantLine.aheadStreak < CONSECUTIVE_CRITICAL_MAX;
  tenantLine.aheadStreak = mayGoAhead ? tenantLine.aheadStreak + 1 : 0;
  return mayGoAhead ? first(criticals, byHead) : first(candidates, byFairness);
}

/** An agent queue may start its first task unless its limit in this lane, or its agent's over all lanes, is reached. */
function startable(state: OracleState, lane: OracleLane, line: OracleLine): Candidate | undefined {
  const ofLine = state.tasks.filter((task) => isOfLine(task, line));
  const head = first(ofLine.filter(isReady), byRank);
  if (head === undefined || agentRoom(state, lane, line) === 0) return undefined;
  return { line, head, inflight: ofLine.filter((task) => task.held).length };
}

function byHead(a: Candidate, b: Candidate): number {
  return byRank(a.head, b.head);
}

function byFairness(a: Candidate, b: Candidate): number {
  return a.inflight - b.inflight || a.line.lastServed - b.line.lastServed;
}

/** The smallest; of equals the first, which among agent queues is the oldest. */
function first<T>(items: readonly T[], compare: (a: T, b: T) => number): T | undefined {
  return [...items].sort(compare)[0];
}
