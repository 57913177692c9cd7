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
  command: string;
  args: string[];
  env: Record<string, string>;
  /** The account to start the command as; absent when the command sees to it, or it is ours. */
  uid?: number;
  gid?: number;
  /** What to remove at the end. */
  folder: string;
}

const orders = JSON.parse(process.argv[2] ?? "") as KeeperOrders;
// The test process may be gone before it has read what we say.
process.stdout.on("error", () => {});

let server = start();
let isRestarting = false;

for await (const word of createInterface({ input: process.stdin })) {
  if (word !== "restart") continue;
  isRestarting = true;
  // SIGINT is PostgreSQL's "fast" shutdown: connections are cut, data is written.
  await end(server, "SIGINT");
  isRestarting = false;
  server = start();
}
// SIGQUIT is "immediate": the data is about to be removed, so nothing needs to be written.
await end(server, "SIGQUIT");
finish(0);

function start(): ChildProcess {
  const { command, args, env, uid, gid, folder } = orders;
  const child = spawn(command, args, {
    cwd: folder,
    env,
    stdio: ["ignore", "ignore", "pipe"],
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
  });
  let said = "";
  let isReady = false;
  child.stderr?.setEncoding("utf8").on("data", (text: string) => {
    // What the server says after it is ready (a cancelled statement, a broken constraint) is the tests' doing.
    if (isReady) return;
    said += text;
    if (!said.includes("ready to accept connections")) return;
    isReady = true;
    say({ pid: child.pid });
  });
  child.on("error", (error) => {
    say({ error: `${command}: ${error.message}` });
    finish(1);
  });
  child.on("close", (code, signal) => {
    if (isRestarting || process.stdin.readableEnded) return;
    if (!isReady) say({ error: `PostgreSQL ended with ${signal ?? code}:\n${said}` });
    finish(1);
  });
  return child;
}

async function end(child: ChildProcess, signal: "SIGINT" | "SIGQUIT"): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  child.kill(signal);
  await once(child, "close");
}

function say(message: object): void {
  process.stdout.write(`${JSON.stringify(message)}\n`);
}

function finish(code: number): void {
  rmSync(orders.folder, { recursive: true, force: true });
  process.exitCode = code;
  process.stdin.destroy();
}
