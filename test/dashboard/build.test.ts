import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { cacheFolders, firstWritable } from "../../src/cli/dashboard/cache-folders.ts";
import { DashboardSource } from "../../src/cli/dashboard/dashboard-source.ts";
import { sourcesHash } from "../../src/cli/dashboard/sources-hash.ts";
import { silentLog } from "../../src/model/log.ts";
import type { Manifest } from "../../src/server/dashboard/dashboard-files.ts";
import { newFolder } from "../end-to-end/server-process.ts";
import { RecordingLog } from "../support/recording-log.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const KB = 1_024;
/** Building takes a second of a free processor. */
const BUILD_MS = 120_000;

function open(options: Partial<ConstructorParameters<typeof DashboardSource>[0]> = {}): DashboardSource {
  return new DashboardSource({ basePath: "", environment: {}, log: silentLog, ...options });
}

/** The folder of a build of these sources, made if it is not there yet. */
async function built(): Promise<string> {
  const source = open();
  await source.open();
  expect(source.state.kind).toBe("ready");
  const name = `dashboard-${await sourcesHash(ROOT)}`;
  const folder = cacheFolders(ROOT, {})
    .map((cache) => join(cache, name))
    .find((each) => existsSync(each));
  return folder ?? "";
}

function gzipped(folder: string, path: string): number {
  const file = join(folder, path);
  return readFileSync(existsSync(`${file}.gz`) ? `${file}.gz` : file).length;
}

describe("what is built", () => {
  test(
    "stays within its budget: 160 KB in all, 80 KB before anything is shown, both compressed",
    async () => {
      const folder = await built();
      const { files } = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8")) as Manifest;
      const code = files.map(({ path }) => path).filter((path) => /\.(?:js|css)$/.test(path));
      const page = readFileSync(join(folder, "index.html"), "utf8");
      const entry = [...page.matchAll(/assets\/[\w-]+\.js/g)].map(([path]) => path);
      const size = (paths: readonly string[]) => paths.reduce((sum, path) => sum + gzipped(folder, path), 0);
      expect(code).toEqual(expect.arrayContaining(entry));
      expect(size(entry)).toBeLessThanOrEqual(80 * KB);
      expect(size(code)).toBeLessThanOrEqual(160 * KB);
    },
    BUILD_MS,
  );

  test(
    "names no other origin, is made for production, and has nothing that its policy forbids",
    async () => {
      const folder = await built();
      // Messages of libraries for the console, and names of XML.
      const KNOWN = /^https?:\/\/(?:react\.dev|www\.w3\.org|127\.0\.0\.1|example\.com)/;
      const page = readFileSync(join(folder, "index.html"), "utf8");
      expect(page).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=/);
      for (const name of readdirSync(join(folder, "assets")).filter((each) => /\.(?:js|css)$/.test(each))) {
        const text = readFileSync(join(folder, "assets", name), "utf8");
        const urls = [...text.matchAll(/https?:\/\/[\w.-]+/g)].map(([url]) => url);
        expect(urls.filter((url) => !KNOWN.test(url))).toEqual([]);
        expect(text).not.toContain("react-dom-client.development");
        expect(text).not.toMatch(/\beval\(|new Function\(/);
      }
    },
    BUILD_MS,
  );

  test("is named by its sources: any change is another build", async () => {
    const root = newFolder();
    mkdirSync(join(root, "dashboard", "src"), { recursive: true });
    writeFileSync(join(root, "dashboard", "src", "a.ts"), "1");
    const first = await sourcesHash(root);
    expect(await sourcesHash(root)).toBe(first);
    writeFileSync(join(root, "dashboard", "src", "a.test.ts"), "a test is not built");
    expect(await sourcesHash(root)).toBe(first);
    writeFileSync(join(root, "dashboard", "src", "a.ts"), "2");
    expect(await sourcesHash(root)).not.toBe(first);
    writeFileSync(join(root, "package-lock.json"), "{}");
    const withLock = await sourcesHash(root);
    mkdirSync(join(root, "src", "client"), { recursive: true });
    writeFileSync(join(root, "src", "client", "b.ts"), "");
    expect(await sourcesHash(root)).not.toBe(withLock);
  });

  test(
    "is built once when several ask at the same time",
    async () => {
      const cache = newFolder();
      const name = `dashboard-${await sourcesHash(ROOT)}`;
      // A lock of a process that has ended delays no build.
      writeFileSync(join(cache, `${name}.lock`), "999999999");
      const sources = Array.from({ length: 3 }, () => open({ caches: [cache] }));
      await Promise.all(sources.map((source) => source.open()));
      expect(sources.map(({ state }) => state.kind)).toEqual(["ready", "ready", "ready"]);
      expect(readdirSync(cache)).toEqual([name]);
    },
    BUILD_MS,
  );
});

describe("where it is looked for:", () => {
  test("the package carries its files", async () => {
    const packaged = newFolder();
    cpSync(await built(), packaged, { recursive: true });
    const source = open({ root: newFolder(), packaged, basePath: "/rota" });
    await source.open();
    const { state } = source;
    const page = state.kind === "ready" ? state.files.get("index.html")?.bytes.toString() : "";
    expect(page).toContain('content="/rota"');
    expect(page).toContain('src="/rota/ui/assets/');
  });

  test("a folder that cannot be written to is passed over", async () => {
    const folder = newFolder();
    const closed = join(folder, "closed");
    mkdirSync(closed);
    chmodSync(closed, 0o500);
    const open = join(folder, "open");
    // Root may write anywhere, but not below a file.
    writeFileSync(join(folder, "file"), "");
    expect(await firstWritable([join(folder, "file", "cache"), open])).toBe(open);
    expect(await firstWritable([join(folder, "file", "cache")])).toBeUndefined();
    expect(cacheFolders("/srv/rota", { XDG_CACHE_HOME: "/home/a/cache" }).slice(0, 2)).toEqual([
      join("/srv/rota", "node_modules", ".cache", "rota"),
      join("/home/a/cache", "rota"),
    ]);
  });

  test.each([
    ["files are missing", [], "install the package"],
    ["packages are not installed", ["dashboard"], "run `npm ci`"],
    ["the build fails", ["dashboard", "vite"], "npm run build:dashboard"],
  ])("when %s the page says what helps, and the log says so once", async (_what, parts, remedy) => {
    const root = newFolder();
    if (parts.includes("dashboard")) {
      mkdirSync(join(root, "dashboard"));
      writeFileSync(join(root, "dashboard", "index.html"), "");
    }
    if (parts.includes("vite")) {
      mkdirSync(join(root, "node_modules"));
      symlinkSync(join(ROOT, "node_modules", "vite"), join(root, "node_modules", "vite"));
      mkdirSync(join(root, "scripts"));
      writeFileSync(join(root, "scripts", "build-dashboard.ts"), 'throw new Error("broken")');
    }
    const log = new RecordingLog();
    const source = open({ root, packaged: join(root, "none"), caches: [newFolder()], log });
    await source.open();
    expect(source.state).toEqual({ kind: "failed", remedy: expect.stringContaining(remedy) });
    expect(log.messages()).toHaveLength(1);
  });

  test("a build ends with the server that began it", async () => {
    const root = newFolder();
    mkdirSync(join(root, "dashboard"));
    writeFileSync(join(root, "dashboard", "index.html"), "");
    mkdirSync(join(root, "node_modules"));
    symlinkSync(join(ROOT, "node_modules", "vite"), join(root, "node_modules", "vite"));
    mkdirSync(join(root, "scripts"));
    writeFileSync(join(root, "scripts", "build-dashboard.ts"), "setInterval(() => {}, 1_000)");
    const log = new RecordingLog();
    const source = open({ root, packaged: join(root, "none"), caches: [newFolder()], log });
    const opening = source.open();
    source.stop();
    await opening;
    expect(source.state.kind).toBe("building");
    expect(log.lines).toEqual([]);
  });
});
