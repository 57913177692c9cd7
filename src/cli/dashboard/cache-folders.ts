import { constants } from "node:fs";
import { access, mkdir, stat } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import type { Environment } from "../../config/process-environment.ts";

/** Where builds are cached, best first: beside the packages they were made of, in the user's cache, in the temporary folder. */
export function cacheFolders(root: string, environment: Environment): string[] {
  const own = environment["XDG_CACHE_HOME"] || join(homedir(), ".cache");
  return [
    join(root, "node_modules", ".cache", "rota"),
    join(own, "rota"),
    join(tmpdir(), `rota-${process.getuid?.() ?? "cache"}`),
  ];
}

/** The first folder that is writable, created if needed. Undefined: none is. */
export async function firstWritable(folders: readonly string[]): Promise<string | undefined> {
  for (const folder of folders) {
    if (await isOurs(folder)) return folder;
  }
  return undefined;
}

/** A folder of another user is not trusted: in the temporary folder, any user could have created it first. */
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
