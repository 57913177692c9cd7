/**
 * Builds the dashboard into a folder, by default `dist/dashboard`: `node scripts/build-dashboard.ts [folder]`.
 *
 * The folder appears whole or not at all. Of several that build into the same folder at once one does the work, and the
 * others wait for it: servers that start together in a fresh clone all ask for the same build.
 */
import { existsSync, globSync } from "node:fs";
import { mkdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { brotliCompress, constants, gzip } from "node:zlib";
import { build } from "vite";
import config from "../dashboard/vite.config.ts";
import { withLockFile } from "./with-lock-file.ts";

const ROOT = join(import.meta.dirname, "..");
const MANIFEST = "manifest.json";
/** What is smaller than this gains nothing by compression. */
const COMPRESSED_FROM_BYTES = 1_024;
/** How many builds of other states of the sources are kept beside this one. */
const KEPT = 4;

// A test may start this. The server never serves a development build.
process.env["NODE_ENV"] = "production";

const folder = resolve(process.argv[2] ?? join(ROOT, "dist", "dashboard"));
await mkdir(dirname(folder), { recursive: true });
await withLockFile(`${folder}.lock`, {
  isDone: () => process.argv[2] !== undefined && isBuilt(),
  work: () => buildInto(folder),
});
await dropOldBuilds();

function isBuilt(): boolean {
  return existsSync(join(folder, MANIFEST));
}

async function buildInto(target: string): Promise<void> {
  const made = `${target}.${process.pid}`;
  try {
    await build({
      ...config,
      configFile: false,
      // Chunks find each other relative to where they are, whatever path a proxy has put in front.
      base: "./",
      logLevel: "error",
      build: { ...config.build, outDir: made, emptyOutDir: true },
    });
    const paths = globSync("**/*.{html,js,css,svg}", { cwd: made }).sort();
    const files = await Promise.all(
      paths.map(async (path) => ({
        path: path.replaceAll("\\", "/"),
        encodings: await compress(join(made, path)),
      })),
    );
    await writeFile(join(made, MANIFEST), JSON.stringify({ files }));
    if (process.argv[2] === undefined) await rm(target, { recursive: true, force: true });
    // A process that was faster has built the same.
    await rename(made, target).catch((error) => {
      if (!isBuilt()) throw error;
    });
  } finally {
    await rm(made, { recursive: true, force: true });
  }
}

/** The page is written anew when it is served; everything else is served as it is. */
async function compress(file: string): Promise<("br" | "gzip")[]> {
  const bytes = await readFile(file);
  if (file.endsWith(".html") || bytes.length < COMPRESSED_FROM_BYTES) return [];
  const params = { [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY };
  await writeFile(`${file}.br`, await promisify(brotliCompress)(bytes, { params }));
  await writeFile(`${file}.gz`, await promisify(gzip)(bytes, { level: constants.Z_BEST_COMPRESSION }));
  return ["br", "gzip"];
}

/** Servers read a build into memory, so that nothing needs one that is gone. */
async function dropOldBuilds(): Promise<void> {
  if (!basename(folder).startsWith("dashboard-")) return;
  const others = globSync("dashboard-*/manifest.json", { cwd: dirname(folder) })
    .map((path) => join(dirname(folder), dirname(path)))
    .filter((path) => path !== folder);
  const dated = await Promise.all(
    others.map(async (path) => ({ path, at: (await stat(path).catch(() => undefined))?.mtimeMs ?? 0 })),
  );
  const old = dated.sort((one, other) => other.at - one.at).slice(KEPT);
  await Promise.all(old.map(({ path }) => rm(path, { recursive: true, force: true })));
}
