import { execFileSync } from "node:child_process";
import { cpus, loadavg, release, totalmem, type } from "node:os";
import Sqlite from "better-sqlite3";
import { connect } from "./postgres/database.ts";

/** Where and of what the figures are: without it they cannot be compared with others. */
export interface Machine {
  readonly commit: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGib: number;
  readonly kernel: string;
  readonly node: string;
  readonly sqlite: string;
  readonly postgres: string | null;
  /** Of the minute before: more than a fraction means that others were at work. */
  readonly load: number;
}

export async function describeMachine(postgresUrl: string | null): Promise<Machine> {
  const [cpu, ...others] = cpus();
  return {
    commit: commit(),
    cpu: cpu?.model.trim() ?? "unknown",
    cores: 1 + others.length,
    memoryGib: Math.round(totalmem() / 2 ** 30),
    kernel: `${type()} ${release()}`,
    node: process.version,
    sqlite: sqliteVersion(),
    postgres: postgresUrl === null ? null : await postgresVersion(postgresUrl),
    load: loadavg()[0] ?? 0,
  };
}

function commit(): string {
  try {
    const git = (...args: string[]) => execFileSync("git", args, { encoding: "utf8" }).trim();
    const changed = git("status", "--porcelain", "--untracked-files=no", "src") !== "";
    return git("rev-parse", "--short", "HEAD") + (changed ? " with changes" : "");
  } catch {
    return "unknown";
  }
}

function sqliteVersion(): string {
  const db = new Sqlite(":memory:");
  const { version } = db.prepare("select sqlite_version() as version").get() as { version: string };
  db.close();
  return version;
}

async function postgresVersion(url: string): Promise<string> {
  const client = await connect(url);
  const { rows } = await client.query<{ version: string; fsync: string; commit: string }>(
    `select current_setting('server_version') as version, current_setting('fsync') as fsync,
            current_setting('synchronous_commit') as commit`,
  );
  await client.end();
  const [server] = rows;
  return `${server?.version} (fsync ${server?.fsync}, synchronous_commit ${server?.commit})`;
}
