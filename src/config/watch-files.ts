import { statSync } from "node:fs";
import { systemClock } from "../engine/node/system-clock.ts";
import type { Clock, Timer } from "../model/clock.ts";

/** How soon a change is noticed. */
const LOOK_MS = 1_000;
/** Whoever writes a file may not have finished when the change is noticed. */
const SETTLE_MS = 100;

/**
 * Calls `onChange` soon after one of these files appeared, changed or went, until the returned function is called. A
 * hint and no more: what it misses is found by whoever looks at the file now and then.
 *
 * The files are looked at rather than their folder being watched: `fs.watch` hears every write of a database that lies
 * beside them, which cost a tenth of the throughput where it was measured, and hears nothing on some network drives. A
 * look takes microseconds.
 */
export function watchFiles(
  paths: readonly string[],
  onChange: () => void,
  { clock = systemClock }: { readonly clock?: Clock } = {},
): () => void {
  let seen = paths.map(traces).join();
  let timer: Timer;
  const waitAndLook = (): void => {
    timer = clock.setTimer(LOOK_MS, look);
  };
  const look = (): void => {
    const now = paths.map(traces).join();
    if (now === seen) {
      waitAndLook();
      return;
    }
    seen = now;
    timer = clock.setTimer(SETTLE_MS, () => {
      waitAndLook();
      onChange();
    });
  };
  waitAndLook();
  return () => timer.cancel();
}

/** What changes with a file. */
function traces(path: string): string {
  try {
    const { mtimeMs, size, ino } = statSync(path);
    return `${mtimeMs} ${size} ${ino}`;
  } catch {
    return "none";
  }
}
