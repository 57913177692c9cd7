import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { setTimeout as delay } from "node:timers/promises";
import { onTestFinished } from "vitest";
import { type Answer, ask } from "../support/http.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const MAIN = join(ROOT, "src", "cli", "main.ts");

/** Long enough for a busy machine; a test that waits in vain ends with a sentence. */
const PATIENCE_MS = 20_000;

export interface Ended {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface RunningProcess {
  readonly stdout: () => string;
  readonly stderr: () => string;
  readonly ended: Promise<Ended>;
  kill(signal: NodeJS.Signals): void;
  /** The same for it and all that it has started, as a terminal does on Ctrl-C. */
  killGroup(signal: NodeJS.Signals): void;
}

export interface ServerProcess extends RunningProcess {
  readonly url: string;
  ask(path: string, init?: Parameters<typeof ask>[1]): Promise<Answer>;
}

/** How a process runs. */
export interface RunParams {
  readonly environment?: Readonly<Record<string, string>>;
  readonly folder?: string;
  /** What it can read from stdin. */
  readonly input?: string;
  /** The program of `rota`; left out: this version's. */
  readonly main?: string;
}

export interface ServeParams {
  readonly args?: readonly string[];
  readonly storage?: string;
  readonly environment?: Readonly<Record<string, string>>;
  readonly folder?: string;
  readonly main?: string;
}

/** An empty folder that goes with the test. */
export function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), "rota-end-to-end-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Runs `rota ARGS` as a process of its own, which ends with the test. */
export function runRota(args: readonly string[], params: RunParams = {}): RunningProcess {
  const { main = MAIN, ...rest } = params;
  return run(process.execPath, [main, ...args], { folder: newFolder(), ...rest });
}

/** Starts a server on a free port and waits until it says that it is ready. */
export async function startServer(params: ServeParams = {}): Promise<ServerProcess> {
  const { args = [], storage = "sqlite::memory:", ...rest } = params;
  const server = runRota(["serve", "--port", "0", "--storage", storage, ...args], rest);
  if (!isCompiled) {
    isCompiled = true;
    // Processes leave their compiled code to others when they end, not when they are killed.
    onTestFinished(async () => {
      server.kill("SIGTERM");
      await Promise.race([server.ended, delay(COMPILED_MS)]);
    });
  }
  return ready(server);
}

/** Whether a server has left its compiled code, which is half of the CPU time of a start. */
let isCompiled = false;
const COMPILED_MS = 5_000;

/** The same by `npm start`, as the README says. */
export async function npmStart(
  args: readonly string[],
  params: Pick<RunParams, "environment"> = {},
): Promise<ServerProcess> {
  return ready(run("npm", ["start", "--silent", "--", ...args], { folder: ROOT, ...params }));
}

function run(
  command: string,
  args: readonly string[],
  { folder, environment = {}, input }: RunParams & { readonly folder: string },
): RunningProcess {
  // What the developer's own shell sets must not change what is tested.
  const inherited = Object.entries(process.env).filter(([name]) => !/^(?:ROTA|npm)_/.test(name));
  const child = spawn(command, args, {
    cwd: folder,
    env: { ...Object.fromEntries(inherited), ...environment },
    stdio: [input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    // The leader of a group of its own, so that a signal for all of it does not reach the tests.
    detached: true,
  });
  child.stdin?.end(input);
  const ended = once(child, "close").then(([code, signal]) => ({ code, signal }) as Ended);
  const killGroup = (signal: NodeJS.Signals) => {
    try {
      process.kill(-(child.pid as number), signal);
    } catch {
      // No process of it is left.
    }
  };
  onTestFinished(async () => {
    killGroup("SIGKILL");
    await ended;
  });
  return {
    stdout: collect(child.stdout as Readable),
    stderr: collect(child.stderr as Readable),
    ended,
    kill: (signal) => child.kill(signal),
    killGroup,
  };
}

function collect(stream: Readable): () => string {
  let text = "";
  stream.setEncoding("utf8").on("data", (chunk) => {
    text += chunk;
  });
  return () => text;
}

async function ready(server: RunningProcess): Promise<ServerProcess> {
  let hasEnded = false;
  void server.ended.then(() => {
    hasEnded = true;
  });
  await eventually(() => server.stdout().includes("\n") || hasEnded, "the server to be ready");
  const url = /http:\/\/\S+/.exec(server.stdout())?.[0];
  if (url === undefined) throw new Error(`the server did not start: ${server.stderr()}`);
  return { ...server, url, ask: (path, init) => ask(url + path, init) };
}

/** Asks again and again, since what happens in another process sends no signal to this one. */
export async function eventually(
  condition: () => boolean | Promise<boolean>,
  what: string,
  patienceMs = PATIENCE_MS,
): Promise<void> {
  const giveUpAt = performance.now() + patienceMs;
  while (!(await condition())) {
    if (performance.now() > giveUpAt) throw new Error(`waited ${patienceMs} ms in vain for ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
