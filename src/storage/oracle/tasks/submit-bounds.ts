import {
  type BoundsUsed,
  boundExceeded,
  type ExceededBound,
  SUBMIT_MINUTES,
  type SubmitBounds,
} from "../../storage.ts";
import { isWaiting, type OracleState, type OracleTask } from "../state.ts";

const MINUTE_MS = 60_000;

/** Counts new and retried tasks for their owner. Throws if that exceeds a bound; the caller then restores the state. */
export function countBounded(state: OracleState, bounds: SubmitBounds, tasks: readonly OracleTask[]): void {
  if (tasks.length === 0) return;
  const now = state.clock.now();
  const exceeded =
    submitsExceeded(state, bounds, tasks.length, now) ??
    openExceeded(state, bounds, tasks) ??
    descendantsExceeded(state, bounds, tasks.length);
  if (exceeded !== null) throw boundExceeded(exceeded, now);
}

export function boundsUsed(state: OracleState, bounds: SubmitBounds): BoundsUsed {
  const { tenant, owner, maxSubmitsPerHour, maxOpenTasks, descendants } = bounds;
  const isOwn = (each: { tenant: string; owner: string }) => each.tenant === tenant && each.owner === owner;
  const since = Math.floor(state.clock.now() / MINUTE_MS) - SUBMIT_MINUTES;
  const submits = new Map<number, number>();
  for (const { minute, ...each } of state.boundedSubmits) {
    if (isOwn(each) && minute > since) submits.set(minute, (submits.get(minute) ?? 0) + 1);
  }
  const minutes = [...submits].map(([minute, count]) => ({ minute, submits: count }));
  return {
    minutes: maxSubmitsPerHour === null ? [] : minutes.sort((a, b) => a.minute - b.minute),
    open:
      maxOpenTasks === null
        ? 0
        : state.boundedTasks.filter((each) => isOwn(each) && isOpen(state, each.seq)).length,
    descendants: descendants === null ? 0 : countBelow(state, tenant, descendants.root),
  };
}

function isOpen(state: OracleState, seq: number): boolean {
  const task = state.tasks.find((each) => each.seq === seq);
  return task !== undefined && (isWaiting(task) || task.held !== null);
}

function countBelow(state: OracleState, tenant: string, root: string): number {
  return state.tasks.filter((task) => task.tenant === tenant && task.spec.within?.rootTaskId === root).length;
}

function submitsExceeded(
  state: OracleState,
  { tenant, owner, maxSubmitsPerHour: max }: SubmitBounds,
  count: number,
  now: number,
): ExceededBound | null {
  if (max === null) return null;
  const minute = Math.floor(now / MINUTE_MS);
  for (let n = 0; n < count; n += 1) state.boundedSubmits.push({ tenant, owner, minute });
  const counted = state.boundedSubmits
    .filter((each) => each.tenant === tenant && each.owner === owner && each.minute > minute - SUBMIT_MINUTES)
    .map((each) => each.minute)
    .sort((a, b) => a - b);
  if (counted.length <= max) return null;
  const last = counted[counted.length - max - 1] ?? minute;
  const retryAt = (last + SUBMIT_MINUTES) * MINUTE_MS;
  return { bound: "maxSubmitsPerHour", max, used: counted.length - count, retryAt };
}

function openExceeded(
  state: OracleState,
  { tenant, owner, maxOpenTasks: max }: SubmitBounds,
  tasks: readonly OracleTask[],
): ExceededBound | null {
  if (max === null) return null;
  const isOwn = (each: { tenant: string; owner: string }) => each.tenant === tenant && each.owner === owner;
  const counted = new Set(state.boundedTasks.filter(isOwn).map(({ seq }) => seq));
  const others = tasks.filter(({ seq }) => !counted.has(seq));
  state.boundedTasks.push(...others.map(({ seq }) => ({ tenant, owner, seq })));
  state.boundedTasks = state.boundedTasks.filter((each) => !isOwn(each) || isOpen(state, each.seq));
  const open = state.boundedTasks.filter(isOwn).length;
  return open <= max ? null : { bound: "maxOpenTasks", max, used: open - tasks.length, retryAt: null };
}

function descendantsExceeded(
  state: OracleState,
  { tenant, descendants }: SubmitBounds,
  count: number,
): ExceededBound | null {
  if (descendants === null) return null;
  const { root, max } = descendants;
  const below = countBelow(state, tenant, root);
  return below <= max ? null : { bound: "maxDescendants", max, used: below - count, retryAt: null };
}
