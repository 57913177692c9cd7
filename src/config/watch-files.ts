import { type StatsListener, unwatchFile, watchFile } from "node:fs";

/** How soon a change is noticed. A look is one stat of each file. */
const LOOK_MS = 1_000;
/** Whoever writes a file may not have finished when the change is noticed. */
const SETTLE_MS = 100;

/**
 * Calls `onChange` soon after one of these files appeared, changed or went, until the returned function is called. A
 * hint and no more: what it misses is found by whoever looks at the file now and then.
 *
 * The files are looked at rather than their folder being watched: `fs.watch` hears every write of a database that lies
 * beside them, which cost a tenth of the throughput where it was measured, and hears nothing on some network drives.
 */
export function watchFiles(paths: readonly string[], onChange: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  const listener: StatsListener = (now, before) => {
    // A file that was not there and still is not is reported once.
    if (now.mtimeMs === 0 && before.mtimeMs === 0) return;
    clearTimeout(timer);
    timer = setTimeout(onChange, SETTLE_MS).unref();
  };
  for (const path of paths) watchFile(path, { persistent: false, interval: LOOK_MS }, listener);
  return () => {
    clearTimeout(timer);
    for (const path of paths) unwatchFile(path, listener);
  };
}
