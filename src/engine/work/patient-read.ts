import { pause } from "../../clock/pause.ts";
import type { Clock } from "../../model/clock.ts";
import { type Backoff, backoffMs } from "../../services/backoff.ts";
import { isStorageAway } from "../../services/storage-away.ts";

const RETRY: Backoff = { firstMs: 50, maxMs: 2_000 };

export interface PatientReadParams<Value> {
  readonly clock: Clock;
  readonly random: () => number;
  /** Fires when the caller no longer needs the value. */
  readonly signal: AbortSignal;
  readonly read: () => Promise<Value>;
}

/**
 * Reads something from the storage that an attempt needs. Retries while the storage is unavailable: an outage is no fault of
 * the task, which may have no retry left.
 */
export async function readPatiently<Value>(params: PatientReadParams<Value>): Promise<Value> {
  const { clock, random, signal, read } = params;
  for (let tries = 1; ; tries += 1) {
    signal.throwIfAborted();
    try {
      return await read();
    } catch (error) {
      if (!isStorageAway(error)) throw error;
    }
    await pause(clock, backoffMs(RETRY, tries, random));
  }
}
