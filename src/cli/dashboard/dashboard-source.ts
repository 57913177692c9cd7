import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { constants, setPriority } from "node:os";
import { join } from "node:path";
import type { Environment } from "../../config/process-environment.ts";
import type { Log } from "../../model/log.ts";
import type { Dashboard, DashboardState } from "../../server/dashboard/dashboard.ts";
import { MANIFEST, readDashboardFiles } from "../../server/dashboard/dashboard-files.ts";
import { cacheFolders, firstWritable } from "./cache-folders.ts";
import { sourcesHash } from "./sources-hash.ts";

/** How many characters of a failed build's output are logged. */
const SAID_MAX = 2_000;

const REINSTALL = "Its files are missing: install the package `rota` again.";
const INSTALL = "It is built by packages that are not installed: run `npm ci` and start Rota again.";
const BUILD = "Building it failed: run `npm run build:dashboard` to see why, then start Rota again.";
const NO_FOLDER = "There is no folder it could be built in: make `node_modules/.cache` writable.";

export interface DashboardSourceOptions {
  readonly basePath: string;
  readonly environment: Environment;
  readonly log: Log;
  /** For tests: the root of the clone, and the folder of the built files in the package. */
  readonly root?: string;
  readonly packaged?: string;
  /** For tests: where builds are cached. */
  readonly caches?: readonly string[];
}

/**
 * Finds the files of the dashboard. The npm package contains them. In a clone they are built once for each state of the sources,
 * by another process with low priority, while the server already runs.
 */
export class DashboardSource implements Dashboard {
  readonly #options: DashboardSourceOptions;
  #state: DashboardState = { kind: "building" };
  #build: ChildProcess | undefined;
  #stopped = false;

  constructor(options: DashboardSourceOptions) {
    this.#options = options;
  }

  get state(): DashboardState {
    return this.#state;
  }

  /** Resolves once it is known whether there is a dashboard; never rejects. */
  async open(): Promise<void> {
    const { basePath, log } = this.#options;
    try {
      const found = await this.#find();
      if (this.#stopped) return;
      if ("folder" in found) {
        this.#state = { kind: "ready", files: await readDashboardFiles(found.folder, basePath) };
        return;
      }
      this.#state = { kind: "failed", remedy: found.remedy };
      log.warn(found.said === undefined ? {} : { said: found.said }, `no dashboard: ${found.remedy}`);
    } catch (error) {
      this.#state = { kind: "failed", remedy: BUILD };
      log.warn({ error }, `no dashboard: ${BUILD}`);
    }
  }

  /** Also ends a running build. */
  stop(): void {
    this.#stopped = true;
    this.#build?.kill();
  }

  async #find(): Promise<{ folder: string } | { remedy: string; said?: string }> {
    const { environment } = this.#options;
    const {
      root = join(import.meta.dirname, "..", "..", ".."),
      packaged = join(import.meta.dirname, "..", "..", "dashboard"),
    } = this.#options;
    if (existsSync(join(packaged, MANIFEST))) return { folder: packaged };
    if (!existsSync(join(root, "dashboard", "index.html"))) return { remedy: REINSTALL };
    const caches = this.#options.caches ?? cacheFolders(root, environment);
    const name = `dashboard-${await sourcesHash(root)}`;
    const writable = await firstWritable(caches);
    const kept = caches.slice(0, writable === undefined ? undefined : caches.indexOf(writable) + 1);
    const built = kept.map((cache) => join(cache, name)).find((each) => existsSync(join(each, MANIFEST)));
    if (built !== undefined) return { folder: built };
    if (!existsSync(join(root, "node_modules", "vite", "package.json"))) return { remedy: INSTALL };
    if (writable === undefined) return { remedy: NO_FOLDER };
    const folder = join(writable, name);
    const { code, said } = await this.#runBuild(root, folder);
    return code === 0 ? { folder } : { remedy: BUILD, said };
  }

  async #runBuild(root: string, folder: string): Promise<{ code: number | null; said: string }> {
    const script = join(root, "scripts", "build-dashboard.ts");
    const build = spawn(process.execPath, [script, folder], {
      cwd: root,
      stdio: ["ignore", "ignore", "pipe"],
    });
    this.#build = build;
    if (this.#stopped) build.kill();
    beModest(build.pid);
    let said = "";
    build.stderr.setEncoding("utf8").on("data", (text: string) => {
      said = (said + text).slice(-SAID_MAX);
    });
    const [code] = (await once(build, "close")) as [number | null];
    this.#build = undefined;
    return { code, said };
  }
}

/** The server goes first. */
function beModest(pid: number | undefined): void {
  try {
    if (pid !== undefined) setPriority(pid, constants.priority.PRIORITY_LOW);
  } catch {
    // The build has already ended, or the system has no priorities.
  }
}
