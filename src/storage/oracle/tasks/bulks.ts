import { isTerminal } from "../../../model/task-state.ts";
import type { BulkName, BulkRecord, BulkStep, EndedTask, NewBulk, SteppedBulk } from "../../storage.ts";
import { advanceRollups } from "../log/rollups.ts";
import { copyJson, findTask, type OracleBulk, type OracleState, signal } from "../state.ts";
import { cancelTasks } from "./cancel-tasks.ts";
import { isNeeded, remove } from "./prune.ts";
import { retryTask } from "./retry-task.ts";

export function addBulk(
  state: OracleState,
  { runningMax, keptMax, ...bulk }: NewBulk & { runningMax: number; keptMax: number },
): boolean {
  const own = state.bulks.filter(({ tenant }) => tenant === bulk.tenant);
  if (own.filter(isRunning).length >= runningMax) return false;
  const ended = own.filter((each) => !isRunning(each)).sort(byRequest);
  const gone = new Set(ended.slice(0, Math.max(ended.length - keptMax, 0)));
  state.bulks = state.bulks.filter((each) => !gone.has(each));
  const counts = { done: 0, failed: 0, skipped: 0 };
  state.bulks.push({ ...copyJson(bulk), state: "running", ...counts, served: 0, leaseUntil: null });
  signal(state, { kind: "bulks" });
  return true;
}

export function getBulk(state: OracleState, name: BulkName): BulkRecord | null {
  const bulk = findBulk(state, name);
  return bulk === undefined ? null : toRecord(bulk);
}

export function abortBulk(state: OracleState, name: BulkName): BulkRecord | null {
  const bulk = findBulk(state, name);
  if (bulk === undefined) return null;
  if (isRunning(bulk)) Object.assign(bulk, { state: "aborted", ids: null, leaseUntil: null });
  return toRecord(bulk);
}

export function claimBulk(
  state: OracleState,
  { leaseMs }: { leaseMs: number },
): { bulk: BulkRecord | null; retryMs: number | null } {
  const now = state.clock.now();
  const running = state.bulks.filter(isRunning);
  const lastTurn = (tenant: string) =>
    Math.max(...running.filter((each) => each.tenant === tenant).map(({ served }) => served));
  const [bulk] = running
    // A lease that ends later than any new one could was taken before the clock was set back.
    .filter(({ leaseUntil }) => leaseUntil === null || leaseUntil <= now || leaseUntil > now + leaseMs)
    .sort((a, b) => lastTurn(a.tenant) - lastTurn(b.tenant) || a.served - b.served || byRequest(a, b));
  if (bulk === undefined) {
    const ends = running.flatMap(({ leaseUntil }) => leaseUntil ?? []);
    return { bulk: null, retryMs: ends.length === 0 ? null : Math.min(...ends) - now };
  }
  bulk.served = Math.max(...running.map(({ served }) => served)) + 1;
  bulk.leaseUntil = now + leaseMs;
  return { bulk: toRecord(bulk), retryMs: 0 };
}

export function stepBulk(state: OracleState, params: BulkStep): SteppedBulk | null {
  const bulk = findBulk(state, params);
  if (bulk === undefined || !isRunning(bulk) || bulk.cursor !== params.cursor) return null;
  const { tenant, ids, next } = params;
  // Tasks take the lane and agent of their events along: those must be counted before.
  if (bulk.action === "delete") advanceRollups(state, { limit: Number.MAX_SAFE_INTEGER });
  const found = ids.filter((id) => findTask(state, { tenant, id }) !== undefined);
  const cancelled = bulk.action === "cancel" ? cancelFound(state, tenant, found) : [];
  const done =
    bulk.action === "cancel" ? cancelled.length : found.filter((id) => isActedOn(state, bulk, id)).length;
  bulk.done += done;
  bulk.skipped += found.length - done;
  bulk.failed += ids.length - found.length;
  bulk.leaseUntil = null;
  if (next === null) Object.assign(bulk, { state: "done", ids: null });
  else bulk.cursor = next;
  return { bulk: toRecord(bulk), cancelled };
}

function cancelFound(state: OracleState, tenant: string, ids: readonly string[]): EndedTask[] {
  const answers = cancelTasks(state, { tenant, ids, error: null });
  return answers.filter((answer) => answer.found && answer.was === null) as EndedTask[];
}

/** Retries or deletes a task. Returns whether that was possible. */
function isActedOn(state: OracleState, { tenant, action, requestedAt }: OracleBulk, id: string): boolean {
  const task = findTask(state, { tenant, id });
  if (task === undefined || !isTerminal(task.state) || (task.completedAt ?? 0) > requestedAt) return false;
  if (action === "retry") {
    const answer = retryTask(state, { tenant, id });
    return answer.found && answer.was === null;
  }
  if (isNeeded(state, task, requestedAt)) return false;
  remove(state, [task]);
  return true;
}

function findBulk(state: OracleState, { tenant, id }: BulkName): OracleBulk | undefined {
  return state.bulks.find((bulk) => bulk.tenant === tenant && bulk.id === id);
}

function isRunning(bulk: OracleBulk): boolean {
  return bulk.state === "running";
}

function byRequest(a: OracleBulk, b: OracleBulk): number {
  return a.requestedAt - b.requestedAt || (a.id < b.id ? -1 : 1);
}

function toRecord({ served: _1, leaseUntil: _2, ...bulk }: OracleBulk): BulkRecord {
  return copyJson(bulk);
}
