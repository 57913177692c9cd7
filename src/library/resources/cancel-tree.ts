import { setImmediate as yieldToOthers } from "node:timers/promises";
import { isTerminal } from "../../model/task-state.ts";
import type { Storage } from "../../storage/storage.ts";

/** How many tasks of a tree are read at once. */
const SLICE = 500;
/** How many are cancelled in one transaction, so that other writes do not wait for long. */
const CANCEL_SLICE = 100;
/** How many tasks of a tree are looked at: more exist only if nothing bounds their number. */
const LOOKED_MAX = 20_000;
/** A running task may submit others until it is cancelled itself: each pass finds what came meanwhile. */
const PASSES_MAX = 20;

export interface CancelTreeParams {
  readonly storage: Storage;
  readonly tenant: string;
  /** The task below which to cancel, and the first task of its tree. */
  readonly taskId: string;
  readonly rootTaskId: string;
  /** Cancels tasks. Returns how many had not ended. */
  readonly cancel: (ids: readonly string[]) => Promise<number>;
  /** Called with how many tasks were read. */
  readonly onLooked: (tasks: number) => void;
}

/** Cancels a task and all tasks below it. `more`: some may be left, because there are so many. */
export async function cancelTree(
  params: CancelTreeParams,
): Promise<{ readonly cancelled: number; readonly more: boolean }> {
  // The task first: from then on it submits nothing.
  let cancelled = await params.cancel([params.taskId]);
  for (let passes = 0; passes < PASSES_MAX; passes += 1) {
    const { open, more } = await openBelow(params);
    for (let at = 0; at < open.length; at += CANCEL_SLICE) {
      cancelled += await params.cancel(open.slice(at, at + CANCEL_SLICE));
    }
    if (open.length === 0 || more) return { cancelled, more };
  }
  return { cancelled, more: true };
}

/** The tasks below a task that have not ended, oldest first. */
async function openBelow({
  storage,
  tenant,
  taskId,
  rootTaskId: root,
  onLooked,
}: CancelTreeParams): Promise<{ readonly open: readonly string[]; readonly more: boolean }> {
  const below = new Set([taskId]);
  const open: string[] = [];
  let after = 0;
  for (let looked = 0; looked < LOOKED_MAX; looked += SLICE) {
    const slice = await storage.tasks.tree({ tenant, root, after, limit: SLICE });
    onLooked(slice.length);
    for (const { seq, id, parent, state } of slice) {
      after = seq;
      // A task comes after its parent.
      if (!below.has(parent)) continue;
      below.add(id);
      if (!isTerminal(state)) open.push(id);
    }
    if (slice.length < SLICE) return { open, more: false };
    // SQLite reads on this thread: yield to other requests.
    await yieldToOthers();
  }
  return { open, more: true };
}
