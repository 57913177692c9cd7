import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { promisify } from "node:util";
import type { Command } from "./keeper.ts";

const run = promisify(execFile);

/** Whom PostgreSQL runs as, and what the machine offers to become that account. */
export interface Account {
  uid: number;
  gid: number;
  /** Whether this is the account the tests run as. */
  isOurs: boolean;
  hasSetpriv: boolean;
}

export async function chooseAccount(): Promise<Account> {
  const uid = process.getuid?.() ?? -1;
  const gid = process.getgid?.() ?? -1;
  const hasSetpriv = await isSetprivUsable();
  if (uid !== 0) return { uid, gid, isOurs: true, hasSetpriv };
  return { ...(await findUnprivileged()), isOurs: false, hasSetpriv };
}

const NOBODY = 65534;

/** PostgreSQL refuses to run as root, and initdb refuses an account that /etc/passwd does not name. */
async function findUnprivileged(): Promise<{ uid: number; gid: number }> {
  const lines = (await readFile("/etc/passwd", "utf8")).split("\n");
  const accounts = lines
    .map((line) => line.split(":"))
    .map(([, , uid, gid]) => ({ uid: Number(uid), gid: Number(gid) }))
    .filter(({ uid, gid }) => uid > 0 && gid > 0);
  const account = accounts.find(({ uid }) => uid === NOBODY) ?? accounts[0];
  if (account === undefined) throw new Error("PostgreSQL cannot run as root, and there is no other account.");
  return account;
}

/** BusyBox has a `setpriv` without these options and macOS has none, so that it is tried rather than looked for. */
async function isSetprivUsable(): Promise<boolean> {
  try {
    await run("setpriv", ["--pdeathsig", "INT", "true"]);
    return true;
  } catch {
    return false;
  }
}

/**
 * How to start `command` as `account`. With setpriv the kernel ends it should even the keeper
 * be killed; without, Node changes the account itself and the keeper alone sees to the end.
 */
export function commandAs(account: Account, command: string, args: string[]): Command {
  const { uid, gid, isOurs, hasSetpriv } = account;
  const env = environment();
  if (!hasSetpriv) return { command, args, env, ...(isOurs ? {} : { uid, gid }) };
  const become = isOurs ? [] : ["--reuid", String(uid), "--regid", String(gid), "--clear-groups"];
  return { command: "setpriv", args: [...become, "--pdeathsig", "INT", "--", command, ...args], env };
}

/** Runs `command` as `account` and waits for its end; throws with what it said when it fails. */
export async function runAs(account: Account, cwd: string, command: string, args: string[]): Promise<void> {
  const { uid, gid, isOurs } = account;
  await run(command, args, { cwd, env: environment(), ...(isOurs ? {} : { uid, gid }) });
}

/** Nothing of the developer's PG* variables or language reaches the server. */
function environment(): Record<string, string> {
  return { PATH: process.env["PATH"] ?? "/usr/bin:/bin", LC_ALL: "C" };
}
