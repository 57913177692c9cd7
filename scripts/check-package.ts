/**
 * Proves that the package works for someone who has nothing but the tarball: it is packed, installed in an empty
 * folder, type-checked from there, and its server is started, asked for its health and stopped.
 */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { publint } from "publint";
import { formatMessage } from "publint/utils";

const ROOT = join(import.meta.dirname, "..");
// Opening a database in memory and listening takes well under a second; this is for a busy machine.
const SERVER_LIMIT_MS = 30_000;

const CONTENTS =
  /^package\/(?:package\.json|README\.md|LICENSE|CHANGELOG\.md|llms-full\.txt|bin\/rota\.js|dist\/[\w./-]+\.(?:js|d\.ts|sql)|dist\/dashboard\/[\w./-]+)$/;

const folder = mkdtempSync(join(tmpdir(), "rota-package-"));
try {
  const tarball = pack(folder);
  checkContents(tarball);
  await lint(tarball);
  const consumer = install(tarball, join(folder, "consumer"));
  checkTypes(consumer);
  await checkServer(consumer);
  console.log("The package is sound.");
} finally {
  rmSync(folder, { recursive: true, force: true });
}

function pack(destination: string): string {
  npm(["run", "build"], ROOT);
  npm(["pack", "--ignore-scripts", "--pack-destination", destination], ROOT);
  const tarball = readdirSync(destination).find((name) => name.endsWith(".tgz"));
  if (tarball === undefined) throw new Error("npm pack made no tarball.");
  return join(destination, tarball);
}

/** The package contains no tests, and nothing else of the working directory. */
function checkContents(tarball: string): void {
  const files = execFileSync("tar", ["-tzf", tarball], { encoding: "utf8" }).trim().split("\n");
  const strange = files.filter((file) => !CONTENTS.test(file) || /\.test\./.test(file));
  if (strange.length > 0) throw new Error(`The package has what it should not: ${strange.join(", ")}`);
}

async function lint(tarball: string): Promise<void> {
  const bytes = readFileSync(tarball);
  const pkg = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const { messages } = await publint({
    strict: true,
    pack: { tarball: bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength) },
  });
  for (const message of messages) console.error(formatMessage(message, pkg));
  if (messages.some(({ type }) => type !== "suggestion")) throw new Error("publint found faults.");
}

function install(tarball: string, consumer: string): string {
  mkdirSync(consumer);
  writeFileSync(join(consumer, "package.json"), JSON.stringify({ private: true, type: "module" }));
  npm(["install", "--prefer-offline", "--no-audit", "--no-fund", tarball], consumer);
  return consumer;
}

/** Library checks stay on: a declaration of ours that names a package users do not get must not pass as `any`. */
function checkTypes(consumer: string): void {
  writeFileSync(
    join(consumer, "consumer.ts"),
    [
      `import { createRota } from "rota";`,
      `import { RotaClient } from "rota/client";`,
      `import * as testing from "rota/testing";`,
      `const rota = await createRota({ storage: "sqlite::memory:" });`,
      `await rota.stop();`,
      `export const client = new RotaClient({ url: "http://127.0.0.1:7682" });`,
      `export const helpers: object = testing;`,
      "",
    ].join("\n"),
  );
  const compilerOptions = {
    module: "nodenext",
    target: "es2024",
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    types: ["node"],
    typeRoots: [join(ROOT, "node_modules", "@types")],
  };
  writeFileSync(join(consumer, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["consumer.ts"] }));
  const tsc = join(ROOT, "node_modules", "typescript", "bin", "tsc");
  execFileSync(process.execPath, [tsc, "-p", consumer], { stdio: "inherit" });
}

async function checkServer(consumer: string): Promise<void> {
  const rota = join(consumer, "node_modules", "rota", "bin", "rota.js");
  const server = spawn(process.execPath, [rota, "serve", "--port", "0", "--storage", "sqlite::memory:"], {
    cwd: consumer,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const exited = once(server, "exit") as Promise<[number | null, NodeJS.Signals | null]>;
  const limit = setTimeout(() => server.kill("SIGKILL"), SERVER_LIMIT_MS);
  try {
    const address = await readAddress(createInterface({ input: server.stdout }));
    const health = await fetch(new URL("/health", address));
    if (!health.ok) throw new Error(`/health answered ${health.status}: ${await health.text()}`);
    const page = await fetch(new URL("/ui/", address), { headers: { accept: "text/html" } });
    if (!(await page.text()).includes('<div id="root">')) throw new Error("the package has no dashboard");
    server.kill("SIGTERM");
    const [code, signal] = await exited;
    if (code !== 0) throw new Error(`The server ended with ${signal ?? code} when asked to stop.`);
  } finally {
    clearTimeout(limit);
    server.kill("SIGKILL");
  }
}

async function readAddress(lines: AsyncIterable<string>): Promise<string> {
  for await (const line of lines) {
    const address = /https?:\/\/[^\s"]+/.exec(line)?.[0];
    if (address !== undefined) return address;
  }
  throw new Error("The server ended before it said where it listens.");
}

function npm(args: string[], cwd: string): void {
  execFileSync("npm", [...args, "--loglevel=error"], {
    cwd,
    stdio: ["ignore", "ignore", "inherit"],
    shell: process.platform === "win32",
  });
}
