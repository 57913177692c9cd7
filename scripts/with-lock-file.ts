import { open, readFile, rm, stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

const LOOK_MS = 100;
/** A process that waits longer than this for another does the work itself. */
const WAIT_MS = 120_000;

/**
 * Runs `work` in one process at a time: the one that creates the file `lock`. The others wait, and do nothing if the work
 * `isDone` meanwhile. The lock of a process that has died counts for nothing.
 */
export async function withLockFile(
  lock: string,
  { isDone, work }: { isDone(): boolean; work(): Promise<void> },
): Promise<void> {
  for (const until = Date.now() + WAIT_MS; !(await create(lock)); await sleep(LOOK_MS)) {
    if (isDone()) return;
    if (Date.now() > until || !(await isHeld(lock))) await rm(lock, { force: true });
  }
  try {
    if (!isDone()) await work();
  } finally {
    await rm(lock, { force: true });
  }
}

async function create(lock: string): Promise<boolean> {
  try {
    const file = await open(lock, "wx");
    await file.writeFile(String(process.pid));
    await file.close();
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    return false;
  }
}

/** Whether the process that created the lock is still there. One that has not written its number yet has just begun. */
async function isHeld(lock: string): Promise<boolean> {
  const pid = Number(await readFile(lock, "utf8").catch(() => ""));
  if (pid === 0) return Date.now() - ((await stat(lock).catch(() => undefined))?.mtimeMs ?? 0) < 1_000;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
