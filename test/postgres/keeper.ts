/**
 * Stands between a test process and its PostgreSQL. The keeper's stdin is a pipe from the test process, which
 * the operating system closes however that process ends, `kill -9` included; the keeper then ends the server
 * and removes its data. It says on stdout, one JSON line each time, that the server is ready or why it is not.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { createInterface } from "node:readline";

export interface KeeperOrders {
  /** Makes the data folder; ends by itself. */
  prepare: Command;
  /** The server. */
  serve: Command;
  /** What to remove at the end. */
  folder: string;
}

export interface Command {
  command: string;
  args: string[];
  env: Record<string, string>;
  /** The account to run it as; absent when the command sees to that, or it is ours. */
  uid?: number;
  gid?: number;
}

/**
 * How the server ends before it starts again. SIGINT is PostgreSQL's "fast" shutdown: connections are cut, data is written.
 * SIGQUIT is "immediate", which is a crash: every process exits at once, what was only in memory is lost, and the next
 * start recovers from the write-ahead log.
 */
const SHUTDOWNS: Readonly<Record<string, "SIGINT" | "SIGQUIT">> = { restart: "SIGINT", crash: "SIGQUIT" };

const orders = JSON.parse(process.argv[2] ?? "") as KeeperOrders;
// The test process may be gone before it has read what we say.
process.stdout.on("error", () => {});

let isEnding = false;
const preparing = start(orders.prepare);
let child = preparing;
preparing.once("close", (code) => {
  if (!isEnding && code === 0) serve();
});

for await (const word of createInterface({ input: process.stdin })) {
  const signal = SHUTDOWNS[word];
  if (signal === undefined) continue;
  isEnding = true;
  await end(child, signal);
  isEnding = false;
  serve();
}
isEnding = true;
// SIGQUIT is "immediate": the data is about to be removed, so nothing needs to be written.
await end(child, "SIGQUIT");
finish(0);

function serve(): void {
  child = start(orders.serve);
}

/** Starts one of the commands; says when the server is ready, and what went wrong with either. */
function start({ command, args, env, uid, gid }: Command): ChildProcess {
  const started = spawn(command, args, {
    cwd: orders.folder,
    env,
    stdio: ["ignore", "ignore", "pipe"],
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
  });
  let said = "";
  let isReady = false;
  started.stderr?.setEncoding("utf8").on("data", (text: string) => {
    // What the server says after it is ready (a cancelled statement, a broken constraint) is the tests' doing.
    if (isReady) return;
    said += text;
    if (!said.includes("ready to accept connections")) return;
    isReady = true;
    say({ pid: started.pid });
  });
  started.on("error", (error) => {
    say({ error: `${command}: ${error.message}` });
    finish(1);
  });
  started.on("close", (code, signal) => {
    if (isEnding || (started === preparing && code === 0)) return;
    if (!isReady) say({ error: `${command} ended with ${signal ?? code}:\n${said}` });
    finish(1);
  });
  return started;
}

async function end(running: ChildProcess, signal: "SIGINT" | "SIGQUIT"): Promise<void> {
  if (running.exitCode !== null || running.signalCode !== null) return;
  running.kill(signal);
  await once(running, "close");
}

function say(message: object): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

function finish(code: number): void {
  // A process that the ended one had started may still be writing its last file.
  rmSync(orders.folder, { recursive: true, force: true, maxRetries: 10 });
  process.exitCode = code;
  process.stdin.destroy();
}
