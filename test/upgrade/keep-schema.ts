/**
 * Keeps the schema as it stands, with something of everything in it, so that every later version can be shown to open
 * it: `npm run keep:schema`, once for each new migration, before it is released.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { readMigrations } from "../../src/storage/migrations.ts";
import { startPostgres } from "../postgres/server.ts";
import { dumpPostgres } from "./dump-postgres.ts";
import { dumpSqlite } from "./dump-sqlite.ts";
import { fill } from "./fill.ts";
import { DRIVERS, type Driver, hasFixture, writeFixture } from "./fixture.ts";
import { readAll } from "./read-all.ts";

const ALL = () => ({ events: Number.POSITIVE_INFINITY, notifications: Number.POSITIVE_INFINITY });

async function keep(driver: Driver): Promise<void> {
  const folder = new URL(`../../src/storage/${driver}/migrations/`, import.meta.url);
  const version = readMigrations(folder).length;
  if (hasFixture(driver, version) && !process.argv.includes("--again")) {
    console.log(`${driver} ${version} is kept already; "npm run keep:schema -- --again" makes it anew`);
    return;
  }
  await inEmptyStorage(driver, async (storage, dump) => {
    const { rota, keys } = await fill(storage);
    // Nothing may change between the two reads, or they would describe different states.
    for (;;) {
      const everything = await readAll(rota, ALL);
      const madeAt = Date.now();
      const text = await dump();
      if (!isDeepStrictEqual(await readAll(rota, ALL), everything)) {
        console.log("something moved meanwhile; once more");
        continue;
      }
      writeFixture({ driver, version, contents: { madeAt, keys, everything }, dump: text });
      break;
    }
    await rota.stop({ graceMs: 0 });
    console.log(`kept ${driver} ${version}`);
  });
}

async function inEmptyStorage(
  driver: Driver,
  use: (storage: string, dump: () => string | Promise<string>) => Promise<void>,
): Promise<void> {
  if (driver === "postgres") {
    const server = await startPostgres({ durable: false });
    try {
      return await use(server.url, () => dumpPostgres(server.url));
    } finally {
      await server.stop();
    }
  }
  const folder = mkdtempSync(join(tmpdir(), "rota-keep-schema-"));
  const file = join(folder, "rota.db");
  try {
    await use(`sqlite:${file}`, () => dumpSqlite(file));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

for (const driver of DRIVERS) await keep(driver);
