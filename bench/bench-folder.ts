import { mkdtemp, rm, statfs } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A file system that lives in memory would make waiting for the disk free. */
const TMPFS = 0x01021994;

export interface BenchFolder {
  readonly path: string;
  remove(): Promise<void>;
}

/** A folder for everything that is measured, on a disk. */
export async function makeBenchFolder(): Promise<BenchFolder> {
  for (const parent of [tmpdir(), "/var/tmp", process.cwd()]) {
    if (!(await isOnDisk(parent))) continue;
    const path = await mkdtemp(join(parent, "rota-bench-"));
    return { path, remove: () => rm(path, { recursive: true, force: true }) };
  }
  throw new Error("there is no folder on a disk: name one in TMPDIR");
}

async function isOnDisk(folder: string): Promise<boolean> {
  try {
    return (await statfs(folder)).type !== TMPFS;
  } catch {
    return false;
  }
}
