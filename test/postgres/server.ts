import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { chown, mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { folderInMemory } from "../support/memory-folder.ts";
import { type Account, chooseAccount, commandAs } from "./account.ts";
import { findBinaries } from "./binaries.ts";
import type { KeeperOrders } from "./keeper.ts";

export interface PostgresServer {
  /** A superuser's connection string to the database `postgres`. */
  url: string;
  /** The postmaster's process id; changes with every restart. */
  readonly pid: number;
  /** Ends every connection and comes back on the same port with the same data. */
  restart(): Promise<void>;
  /** As `restart`, but what is not on the disk is lost: an immediate shutdown, and recovery at the next start. */
  crash(): Promise<void>;
  /** Ends the server and removes its data. Stopping twice is fine. */
  stop(): Promise<void>;
}

/**
 * Starts a PostgreSQL of our own on a free port of 127.0.0.1, with an empty data folder.
 *
 * `durable: false` is for tests, which lose nothing in a power cut; its files are in memory where that is possible.
 * `durable: true` waits for the disk at every commit, as a production server does, and is what benchmarks must measure. `settings` come on top.
 */
export async function startPostgres(params: {
  durable: boolean;
  settings?: Settings;
}): Promise<PostgresServer> {
  const settings = {
    ...COMMON_SETTINGS,
    ...(params.durable ? DURABLE_SETTINGS : QUICK_SETTINGS),
    ...params.settings,
  };
  for (let tries = 1; ; tries += 1) {
    try {
      return await startOnPort(await findFreePort(), settings, params.durable);
    } catch (error) {
      const isTaken = error instanceof Error && error.message.includes("could not bind");
      if (isTaken && tries < PORT_TRIES_MAX) continue;
      throw new Error("PostgreSQL could not be started; name one that runs in ROTA_TEST_POSTGRES_URL.", {
        cause: error,
      });
    }
  }
}

// Between our finding a free port and the server's taking it, another process can be quicker.
const PORT_TRIES_MAX = 5;

type Settings = Readonly<Record<string, string>>;

async function startOnPort(port: number, settings: Settings, durable: boolean): Promise<PostgresServer> {
  const account = await chooseAccount();
  const folder = await makeFolder(account, durable);
  const password = randomBytes(16).toString("hex");
  try {
    const binaries = await findBinaries({ account, folder });
    const passwordFile = await writePassword({ account, folder, password });
    const keeper = startKeeper({
      prepare: commandAs(account, binaries.initdb, initdbArgs(folder, passwordFile)),
      serve: commandAs(account, binaries.postgres, postgresArgs(folder, port, settings)),
      folder,
    });
    let pid = await keeper.ready();
    // One at a time: a server that is ended while it starts never says that it is ready.
    let isUp = Promise.resolve();
    const startAgain = (how: "restart" | "crash") => {
      isUp = isUp.then(async () => {
        keeper.send(how);
        pid = await keeper.ready();
      });
      return isUp;
    };
    return {
      url: `postgres://postgres:${password}@127.0.0.1:${port}/postgres`,
      get pid() {
        return pid;
      },
      restart: () => startAgain("restart"),
      crash: () => startAgain("crash"),
      stop: () => keeper.stop(),
    };
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}

/** The folder that holds all the server writes; it belongs to the account the server runs as. */
async function makeFolder(account: Account, durable: boolean): Promise<string> {
  // A private TMPDIR may be closed to the other account, /tmp never is.
  const onDisk = account.isOurs ? tmpdir() : "/tmp";
  const parent = durable ? onDisk : (folderInMemory() ?? onDisk);
  const folder = await mkdtemp(join(parent, "rota-postgres-"));
  if (!account.isOurs) await chown(folder, account.uid, account.gid);
  return folder;
}

async function writePassword(params: {
  account: Account;
  folder: string;
  password: string;
}): Promise<string> {
  const { account, folder, password } = params;
  const file = join(folder, "password");
  await writeFile(file, password, { mode: 0o600 });
  if (!account.isOurs) await chown(file, account.uid, account.gid);
  return file;
}

function initdbArgs(folder: string, passwordFile: string): string[] {
  return [
    "--no-sync",
    "--encoding=UTF8",
    "--locale=C",
    "--username=postgres",
    // A password, although only this machine can connect: its other users are not to become superuser here.
    "--auth=scram-sha-256",
    `--pwfile=${passwordFile}`,
    // The password is random and short-lived; hashing it thousands of times would only slow down connecting.
    "--set=scram_iterations=1",
    `--pgdata=${join(folder, "data")}`,
  ];
}

function postgresArgs(folder: string, port: number, settings: Settings): string[] {
  const args = ["-D", join(folder, "data"), "-p", String(port)];
  for (const [name, value] of Object.entries(settings)) args.push("-c", `${name}=${value}`);
  return args;
}

const COMMON_SETTINGS = {
  listen_addresses: "127.0.0.1",
  unix_socket_directories: "",
  // A server that could not write its log file would be silent about why; stderr is read by the keeper.
  logging_collector: "off",
  lc_messages: "C",
  timezone: "UTC",
  // Several nodes with a pool each, in each of the files that run at the same time.
  max_connections: "200",
};

const QUICK_SETTINGS = { fsync: "off", synchronous_commit: "off", full_page_writes: "off" };

const DURABLE_SETTINGS = { fsync: "on", synchronous_commit: "on", full_page_writes: "on" };

interface Keeper {
  /** Waits until the server takes connections; returns the postmaster's process id. */
  ready(): Promise<number>;
  send(word: string): void;
  stop(): Promise<void>;
}

/** Starts the process that stands between us and the server and ends the server when we are gone. */
function startKeeper(orders: KeeperOrders): Keeper {
  const script = fileURLToPath(new URL("./keeper.ts", import.meta.url));
  const child: ChildProcess = spawn(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", script, JSON.stringify(orders)],
    // A group of its own: a Ctrl-C or a kill meant for the tests must not take the keeper before its work.
    { detached: true, stdio: ["pipe", "pipe", "inherit"], cwd: orders.folder },
  );
  const { stdin, stdout } = child;
  if (stdin === null || stdout === null) throw new Error("The keeper has no pipes.");
  // The keeper may end on its own (the server failed to start); writing to it then is no error of ours.
  stdin.on("error", () => {});
  const exited = once(child, "exit");
  const lines = createInterface({ input: stdout })[Symbol.asyncIterator]();

  return {
    async ready() {
      const line = await lines.next();
      if (line.done) throw new Error("The keeper of PostgreSQL ended without a word.");
      const message = JSON.parse(line.value) as { pid: number } | { error: string };
      if ("error" in message) throw new Error(message.error);
      return message.pid;
    },
    send: (word) => void stdin.write(`${word}\n`),
    async stop() {
      stdin.end();
      await exited;
    },
  };
}

export async function findFreePort(): Promise<number> {
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  if (address === null || typeof address === "string") throw new Error("A TCP server has a port.");
  return address.port;
}
