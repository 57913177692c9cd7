import { statSync } from "node:fs";
import { systemClock } from "../clock/system-clock.ts";
import type { Clock, Timer } from "../model/clock.ts";

/** The interval of the polling. */
const LOOK_MS = 1_000;
/** The writer of a file may not have finished when the change is noticed. */
const SETTLE_MS = 100;

/**
 * Calls `onChange` soon after one of these files appeared, changed or disappeared, until the returned function is called. It is
 * only a hint and may miss a change: `ConfigWatcher` reads the file regularly anyway.
 *
 * It polls the files instead of watching their folder. `fs.watch` reports every write of a database in the same folder, which
 * cost a tenth of the measured throughput, and it reports nothing on some network drives. A poll takes microseconds.
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

/** A text that changes when the file changes. */
function traces(path: string): string {
  try {
    const { mtimeMs, size, ino } = statSync(path);
    return `${mtimeMs} ${size} ${ino}`;
  } catch {
    return "none";
  }
}
