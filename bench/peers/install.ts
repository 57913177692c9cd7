import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";

const FOLDER = import.meta.dirname;

/** The version of each peer, once all are in this folder; null: they cannot be installed. */
export function installPeers(): ReadonlyMap<string, string> | null {
  const wanted = versions(join(FOLDER, "package-lock.json"));
  const isInstalled = () => {
    const present = versions(join(FOLDER, "node_modules", ".package-lock.json"));
    return Object.keys(readJson(join(FOLDER, "package.json"))?.dependencies ?? {}).every(
      (name) => present.has(name) && present.get(name) === wanted.get(name),
    );
  };
  if (!isInstalled()) npmCi();
  return isInstalled() ? wanted : null;
}

/** By the npm that runs this, if one does. What it says goes to stderr: stdout is the report's. */
function npmCi(): void {
  console.error("  installing the peers into bench/peers/node_modules");
  const args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const options = { cwd: FOLDER, stdio: ["ignore", 2, 2] as ("ignore" | number)[] };
  const { npm_execpath: npm, npm_node_execpath: node = process.execPath } = process.env;
  if (npm === undefined) spawnSync("npm", args, { ...options, shell: process.platform === "win32" });
  else spawnSync(node, [npm, ...args], options);
}

function versions(lockfile: string): Map<string, string> {
  const found = new Map<string, string>();
  for (const [path, { version }] of Object.entries(readJson(lockfile)?.packages ?? {})) {
    if (path.startsWith("node_modules/")) found.set(path.slice("node_modules/".length), version);
  }
  return found;
}

interface PackageFile {
  readonly dependencies?: Record<string, string>;
  readonly packages?: Record<string, { readonly version: string }>;
}

function readJson(file: string): PackageFile | null {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as PackageFile;
  } catch {
    return null;
  }
}
