/**
 * Adds to package-lock.json the packages of other platforms that npm left out of it.
 *
 * Where a registry mirror lacks such a package, `npm install` says nothing and leaves it out, and `npm ci` then refuses
 * the lockfile everywhere. Their versions are known all the same: the packages that want them name them exactly.
 * Run this after `npm install` where test/lockfile.test.ts asks for it. It takes the folder of another lockfile, too.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

interface LockedPackage {
  version?: string;
  dev?: boolean;
  optional?: boolean;
  optionalDependencies?: Record<string, string>;
  [field: string]: unknown;
}

const file = join(process.argv[2] ?? join(import.meta.dirname, ".."), "package-lock.json");
const lock = JSON.parse(readFileSync(file, "utf8")) as { packages: Record<string, LockedPackage> };

for (const [path, wanting] of Object.entries(lock.packages)) {
  for (const [name, version] of Object.entries(wanting.optionalDependencies ?? {})) {
    if (isLocked(path, name)) continue;
    if (!/^\d+\.\d+\.\d+/.test(version)) throw new Error(`${path} wants ${name} ${version}: not one version`);
    lock.packages[`node_modules/${name}`] = {
      version,
      ...platformOf(name),
      ...(wanting.dev ? { dev: true } : {}),
      optional: true,
    };
    console.log(`added ${name} ${version}`);
  }
}
const sorted = Object.entries(lock.packages).sort(([a], [b]) => a.localeCompare(b, "en"));
writeFileSync(file, `${JSON.stringify({ ...lock, packages: Object.fromEntries(sorted) }, null, 2)}\n`);

/** Looks where Node would: in the package's own node_modules and in those above it. */
function isLocked(path: string, name: string): boolean {
  for (let folder = path; ; folder = folder.slice(0, Math.max(0, folder.lastIndexOf("/node_modules/")))) {
    if (`${folder}/node_modules/${name}`.replace(/^\//, "") in lock.packages) return true;
    if (folder === "") return false;
    if (!folder.includes("/node_modules/")) folder = "";
  }
}

/** What the name says about where the package runs, so that npm installs it there and nowhere else. */
function platformOf(name: string): { os?: string[]; cpu: string[]; libc?: string[] } {
  const words = name.split(/[/-]/);
  const find = (known: readonly string[]) => known.find((word) => words.includes(word));
  const os = find([
    "aix",
    "android",
    "darwin",
    "freebsd",
    "linux",
    "netbsd",
    "openbsd",
    "openharmony",
    "sunos",
    "win32",
  ]);
  const cpu = find([
    "arm64",
    "arm",
    "ia32",
    "loong64",
    "mips64el",
    "ppc64",
    "riscv64",
    "s390x",
    "wasm32",
    "x64",
  ]);
  if (cpu === undefined || (os === undefined && cpu !== "wasm32")) {
    throw new Error(`The name ${name} does not say for which platform it is: add it by hand.`);
  }
  const libc = words.some((word) => word.startsWith("musl"))
    ? ["musl"]
    : words.includes("gnu")
      ? ["glibc"]
      : undefined;
  return { cpu: [cpu], ...(libc ? { libc } : {}), ...(os ? { os: [os] } : {}) };
}
