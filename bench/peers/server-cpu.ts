import { readdir, readFile } from "node:fs/promises";
import { connect } from "../postgres/database.ts";
import { askRedis } from "./redis/ask-redis.ts";

/** Milliseconds by the number of the process. */
export type RanSoFar = ReadonlyMap<number, number>;

/** The processor time of a database's server processes, as Linux reports it. Elsewhere, and for SQLite, nothing is counted. */
export class ServerCpu {
  /** Its first process; null: there is none, or it cannot be looked at. */
  readonly #pid: number | null;

  private constructor(pid: number | null) {
    this.#pid = pid;
  }

  static async of(url: string): Promise<ServerCpu> {
    if (process.platform !== "linux") return new ServerCpu(null);
    switch (new URL(url).protocol) {
      case "postgres:":
        return new ServerCpu(await postmaster(url));
      case "redis:":
        return new ServerCpu(Number(/process_id:(\d+)/.exec(await askRedis(url, "INFO server"))?.[1]));
      default:
        return new ServerCpu(null);
    }
  }

  /** Milliseconds that its processes have run since `before`. Of each by itself: what one took that has ended is not known. */
  async readMs(before: RanSoFar): Promise<number> {
    let ms = 0;
    for (const [pid, ran] of await this.read()) ms += ran - (before.get(pid) ?? 0);
    return ms;
  }

  /** What it and each of its children have run so far. */
  async read(): Promise<RanSoFar> {
    if (this.#pid === null) return new Map();
    const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
    const family = await Promise.all(
      pids.map(async (pid) => pid === this.#pid || (await parentOf(pid)) === this.#pid),
    );
    const own = pids.filter((_, index) => family[index]);
    return new Map(await Promise.all(own.map(async (pid) => [pid, await ranMs(pid)] as const)));
  }
}

/** A connection is served by a child of the first process. */
async function postmaster(url: string): Promise<number | null> {
  const client = await connect(url);
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  const parent = await parentOf(rows[0]?.pid ?? 0);
  await client.end();
  return parent;
}

async function parentOf(pid: number): Promise<number | null> {
  const stat = await read(`/proc/${pid}/stat`);
  // The name, in brackets, may contain anything.
  const parent = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1];
  return parent === undefined ? null : Number(parent);
}

/** To the nanosecond, where `stat` counts hundredths of a second. */
async function ranMs(pid: number): Promise<number> {
  const [nanoseconds = "0"] = (await read(`/proc/${pid}/schedstat`)).split(" ");
  return Number(nanoseconds) / 1e6;
}

/** Nothing when the process has ended meanwhile. */
async function read(file: string): Promise<string> {
  return readFile(file, "utf8").catch(() => "");
}
