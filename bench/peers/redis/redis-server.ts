import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { findFreePort } from "../../../test/postgres/server.ts";
import type { EmptyStorage } from "../../empty-storage.ts";
import { askRedis } from "./ask-redis.ts";

const PORT_TRIES_MAX = 5;
const STARTS_WITHIN_MS = 10_000;
const PAUSE_MS = 20;

export interface RedisParams {
  /** Where it gets a folder of its own. */
  readonly folder: string;
  readonly appendfsync: "everysec" | "always";
}

/** Starts the machine's `redis-server`, empty, on a free port, with an append-only file. */
export async function startRedis(params: RedisParams): Promise<EmptyStorage> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await startOnPort(await findFreePort(), params);
    } catch (error) {
      const isTaken = error instanceof Error && error.message.includes("in use");
      if (!isTaken || tries === PORT_TRIES_MAX) throw error;
    }
  }
}

async function startOnPort(port: number, { folder, appendfsync }: RedisParams): Promise<EmptyStorage> {
  const own = await mkdtemp(join(folder, "redis-"));
  const server = spawn("redis-server", serverArgs({ port, own, appendfsync }), { stdio: "ignore" });
  // Whatever becomes of this process, it does not leave a server behind.
  const end = () => server.kill("SIGKILL");
  process.once("exit", end);
  const remove = async () => {
    process.removeListener("exit", end);
    end();
    if (server.pid !== undefined && server.exitCode === null) await once(server, "exit");
    await rm(own, { recursive: true, force: true });
  };
  const url = `redis://127.0.0.1:${port}`;
  try {
    await untilReady(server, { url, own });
    return { url, settle: () => untilRewritten(url), remove };
  } catch (error) {
    await remove();
    throw error;
  }
}

function serverArgs({
  port,
  own,
  appendfsync,
}: {
  port: number;
  own: string;
  appendfsync: string;
}): string[] {
  return Object.entries({
    bind: "127.0.0.1",
    port: String(port),
    dir: own,
    logfile: join(own, "redis.log"),
    appendonly: "yes",
    appendfsync,
    // The append-only file is what is kept: no copies of the whole beside it.
    save: "",
    "maxmemory-policy": "noeviction",
    daemonize: "no",
  }).flatMap(([name, value]) => [`--${name}`, value]);
}

async function untilReady(server: ChildProcess, { url, own }: { url: string; own: string }): Promise<void> {
  const failed = new Promise<never>((_, reject) => {
    server.once("error", (error) => {
      const isMissing = "code" in error && error.code === "ENOENT";
      reject(isMissing ? new Error("there is no redis-server: install it") : error);
    });
    server.once("exit", async () => {
      const log = await readFile(join(own, "redis.log"), "utf8").catch(() => "");
      reject(new Error(`redis-server ended: ${log.trim().split("\n").slice(-2).join("; ")}`));
    });
  });
  const ready = async () => {
    const enough = performance.now() + STARTS_WITHIN_MS;
    while (performance.now() < enough) {
      const answer = await askRedis(url, "PING").catch(() => "");
      if (answer.startsWith("+PONG")) return;
      await sleep(PAUSE_MS);
    }
    throw new Error("redis-server did not answer in time");
  };
  await Promise.race([ready(), failed]);
  failed.catch(() => {});
}

/** Once the file has grown, it is rewritten behind the scenes. */
async function untilRewritten(url: string): Promise<void> {
  while (/aof_rewrite_(in_progress|scheduled):1/.test(await askRedis(url, "INFO persistence"))) {
    await sleep(PAUSE_MS);
  }
}
