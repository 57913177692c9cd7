import type { Clock } from "../model/clock.ts";
import type { DependencyResult } from "../model/task.ts";
import { type Backoff, backoffMs } from "../services/backoff.ts";
import { isStorageAway } from "../services/storage-away.ts";
import type { Storage } from "../storage/storage.ts";

const RETRY: Backoff = { firstMs: 50, maxMs: 2_000 };

/**
 * Reads what the tasks resulted in that one depends on. A storage that is away is waited for: it is no fault of the task,
 * which may have no retry left.
 */
export async function readDependencyResults(params: {
  readonly storage: Storage;
  readonly clock: Clock;
  readonly random: () => number;
  readonly seq: number;
  readonly signal: AbortSignal;
}): Promise<DependencyResult[]> {
  const { storage, clock, random, seq, signal } = params;
  for (let tries = 1; ; tries += 1) {
    signal.throwIfAborted();
    try {
      return await storage.tasks.dependencyResults({ seq });
    } catch (error) {
      if (!isStorageAway(error)) throw error;
    }
    await new Promise<void>((resolve) => clock.setTimer(backoffMs(RETRY, tries, random), resolve));
  }
}
