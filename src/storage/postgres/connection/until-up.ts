import { setTimeout as delay } from "node:timers/promises";
import { isNotUpYet, reachedText } from "./errors.ts";

const PAUSE_MS = { first: 250, max: 2_000 } as const;

export interface WaitParams {
  /** How long to wait for a database that is not up yet; 0: not at all. */
  readonly waitMs: number;
  /** Called once, after the first attempt has failed and others follow. */
  readonly onWait: (reason: string) => void;
}

/** Opens a database that may still be starting: together with this process, in another container, after a fail-over. */
export async function untilUp<Opened>(
  open: () => Promise<Opened>,
  { waitMs, onWait }: WaitParams,
): Promise<Opened> {
  const giveUpAt = performance.now() + waitMs;
  for (let pauseMs: number = PAUSE_MS.first, tries = 1; ; tries += 1) {
    try {
      return await open();
    } catch (error) {
      const leftMs = giveUpAt - performance.now();
      if (!isNotUpYet(error) || leftMs <= 0) throw error;
      if (tries === 1) onWait(reachedText(error));
      // This timer keeps the process alive. Nothing else does yet.
      await delay(Math.min(pauseMs, leftMs));
      pauseMs = Math.min(pauseMs * 2, PAUSE_MS.max);
    }
  }
}
