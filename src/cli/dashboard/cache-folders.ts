import { constants } from "node:fs";
import { access, mkdir, stat } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import type { Environment } from "../../config/process-environment.ts";

/** Where builds are kept, the best place first: with the packages they were made of, with the user, in the temporary folder. */
export function cacheFolders(root: string, environment: Environment): string[] {
  const own = environment["XDG_CACHE_HOME"] || join(homedir(), ".cache");
  return [
    join(root, "node_modules", ".cache", "rota"),
    join(own, "rota"),
    join(tmpdir(), `rota-${process.getuid?.() ?? "cache"}`),
  ];
}

/** The first that can be written to, made if need be; undefined: none can. */
export async function firstWritable(folders: readonly string[]): Promise<string | undefined> {
  for (const folder of folders) {
    if (await isOurs(folder)) return folder;
  }
  return undefined;
}

/** What lies in a folder of somebody else is not served: anybody can make one in the temporary folder first. */
async function isOurs(folder: string): Promise<boolean> {
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await access(folder, constants.W_OK);
    const { uid } = await stat(folder);
    return process.getuid === undefined || uid === process.getuid();
  } catch {
    return false;
  }
}
