import { existsSync, globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Everything } from "./read-all.ts";

export const DRIVERS = ["sqlite", "postgres"] as const;
export type Driver = (typeof DRIVERS)[number];

/** Where callbacks go; no receiver listened when the databases were made. */
export const RECEIVER_URL = "http://callbacks.example/";
/** How long after the creation of a database its delayed tasks are due. */
export const SOON_MS = 10 * 60_000;

/** The options they were made with; responses about sessions and lanes depend on them. */
export const OPTIONS = {
  scheduler: { workerCount: 3, maxInflight: 3, maxPerAgent: 6, maxPerAgentInflight: 3 },
  // No receiver listens at RECEIVER_URL, but calls to it are allowed.
  webhooks: { allow: ["127.0.0.1", new URL(RECEIVER_URL).hostname] },
  sessions: { debounceMs: 0 },
  // What hangs is still there when all the rest has been made, however slow the machine.
  timeouts: { defaultMs: 600_000 },
};

const FOLDER = join(import.meta.dirname, "fixtures");

/** A database as the version of Rota left it whose newest migration has this number. */
export interface Fixture {
  readonly driver: Driver;
  readonly version: number;
  readonly contents: Contents;
  /** The database as SQL. */
  readonly dump: string;
}

/** What a database was when it was made. */
export interface Contents {
  /** Milliseconds since 1970. */
  readonly madeAt: number;
  /** API keys as they were shown, by role. */
  readonly keys: Readonly<Record<string, string>>;
  readonly everything: Everything;
}

export function hasFixture(driver: Driver, version: number): boolean {
  return existsSync(`${path(driver, version)}.sql`);
}

export function readFixtures(driver: Driver): Fixture[] {
  const names = globSync(`${driver}-*.sql`, { cwd: FOLDER }).sort();
  return names.map((name) => {
    const version = Number(/\d+/.exec(name)?.[0]);
    const contents = JSON.parse(readFileSync(`${path(driver, version)}.json`, "utf8")) as Contents;
    return { driver, version, contents, dump: readFileSync(join(FOLDER, name), "utf8") };
  });
}

export function writeFixture({ driver, version, contents, dump }: Fixture): void {
  writeFileSync(`${path(driver, version)}.sql`, dump);
  writeFileSync(`${path(driver, version)}.json`, `${JSON.stringify(contents, null, 1)}\n`);
}

function path(driver: Driver, version: number): string {
  return join(FOLDER, `${driver}-${String(version).padStart(3, "0")}`);
}
