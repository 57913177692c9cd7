import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Sqlite from "better-sqlite3";
import { Client } from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { openPostgres } from "../src/storage/postgres/connection/open.ts";
import { openSqlite } from "../src/storage/sqlite/connection/open.ts";
import type { Storage } from "../src/storage/storage.ts";
import { ManualClock } from "../src/testing/manual-clock.ts";
import { copyDatabase, prepareDatabases } from "./postgres/several-nodes.ts";
import { openTestRota } from "./support/rota.ts";
import { away } from "./support/storages.ts";

const UNCHAINED = "chain = null, number = null, previous_hash = null, hash = null";
const UNCHAIN = `update audit_entry set ${UNCHAINED} where number = 2`;

prepareDatabases();

interface Opened {
  readonly storage: Storage;
  /** Runs SQL past Rota, as an attacker who wants to hide something would. */
  tamper(sql: string): Promise<void>;
}

async function openSqliteFile(clock: ManualClock): Promise<Opened> {
  const folder = mkdtempSync(join(tmpdir(), "rota-chains-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const path = join(folder, "rota.db");
  const storage = await openSqlite({ path, clock });
  return {
    storage,
    async tamper(sql) {
      const db = new Sqlite(path);
      db.exec(sql);
      db.close();
    },
  };
}

async function openPostgresDatabase(clock: ManualClock): Promise<Opened> {
  const { url, drop } = await copyDatabase();
  onTestFinished(drop);
  return {
    storage: await openPostgres({ url, clock }),
    async tamper(sql) {
      const client = new Client({ connectionString: url });
      await client.connect();
      await client.query(`set search_path = rota; ${sql}`);
      await client.end();
    },
  };
}

async function fill({ storage, tamper }: Opened, clock: ManualClock) {
  const { rota } = await openTestRota({ clock, storage });
  const { id } = await rota.tenants.create({ name: "acme" });
  for (let n = 1; n <= 5; n += 1) {
    const subject = n === 3 ? "front desk" : `tsk_${n}`;
    rota.audit.record({ tenantId: id, keyId: "key_1", route: "POST /tasks", subject, isChosen: n === 3 });
    await clock.advance(1_000);
  }
  await rota.audit.write({ route: "POST /v1/keys", subject: "key_2", address: "203.0.113.7" });
  const examine = async () => {
    const report = await rota.doctor();
    return report.checks.find(({ name }) => name === "audit");
  };
  return { rota, tenant: id, examine, tamper, chain: rota.node };
}

describe.each<[string, (clock: ManualClock) => Promise<Opened>]>([
  ["SQLite", openSqliteFile],
  ["PostgreSQL", openPostgresDatabase],
])("on %s", (_name, open) => {
  test("an audit log without tampering is as it was written, also after the end of a tenant", async () => {
    const clock = new ManualClock();
    const { rota, tenant, examine } = await fill(await open(clock), clock);
    const summary = "No entry of the audit log was changed or removed: 6 entries in 1 chain.";
    expect(await examine()).toEqual({ name: "audit", ok: true, summary, findings: [] });
    let isOver = false;
    const deleted = rota.tenants.delete(tenant).finally(() => {
      isOver = true;
    });
    // On several nodes it takes a moment until all know.
    while (!isOver) await clock.advance(1_000);
    await deleted;
    expect(await examine()).toMatchObject({ ok: true, summary });
    const { entries } = await rota.audit.list({ tenantId: tenant });
    expect(entries.map(({ subject }) => subject)).toEqual(["tsk_5", "tsk_4", null, "tsk_2", "tsk_1"]);
  });

  test.each([
    [
      "an entry was changed",
      "update audit_entry set route = 'GET /' where number = 2",
      2,
      "it was changed after",
    ],
    ["its time was", "update audit_entry set at = at + 1 where number = 4", 4, "it was changed after"],
    [
      "the last one was",
      "update audit_entry set key_id = 'key_9' where number = 6",
      6,
      "it was changed after",
    ],
    ["an id was", "update audit_entry set subject = 'tsk_9' where number = 5", 5, "it was changed after"],
    ["a name was", "update audit_entry set subject = 'x' where number = 3", 3, "its subject was changed"],
    [
      "a name was erased",
      "update audit_entry set subject = null where number = 3",
      3,
      "its subject was erased",
    ],
    ["one was removed", "delete from audit_entry where number = 4", 5, "the entry before it is missing"],
    ["the first were", "delete from audit_entry where number < 3", 3, "2 entries before it are missing"],
    ["one left its chain", UNCHAIN, 3, "the entry before it is missing"],
    [
      "one was replaced, with its hash",
      "update audit_entry set hash = 'x' where number = 2",
      2,
      "it was changed",
    ],
    [
      "hashes were left out",
      "update audit_entry set previous_hash = '' where number = 2",
      2,
      "the entry before it",
    ],
  ])("%s: that shows", async (_what, sql, number, fault) => {
    const clock = new ManualClock();
    const { examine, tamper, chain } = await fill(await open(clock), clock);
    await tamper(sql);
    const check = await examine();
    expect(check).toMatchObject({ ok: false, summary: "1 thing is wrong." });
    expect(check?.findings[0]).toMatch(
      new RegExp(`^Entry ${number} of node ${chain} \\(seq \\d+\\): ${fault}`),
    );
  });

  test("that its end was cut off does not show", async () => {
    const clock = new ManualClock();
    const { examine, tamper } = await fill(await open(clock), clock);
    await tamper("delete from audit_entry where number > 4");
    expect(await examine()).toMatchObject({ ok: true });
  });

  test("what is deleted for its age leaves the rest as it was written", async () => {
    const clock = new ManualClock();
    const opened = await open(clock);
    const { examine, tamper } = await fill(opened, clock);
    await opened.storage.audit.prune({ retentionMs: 3_500, limit: 100 });
    const check = await examine();
    expect(check).toMatchObject({ ok: true });
    expect(check?.summary).toMatch(/: [1-5] entries in 1 chain/);
    await tamper("update audit_anchor set hash = 'x'");
    expect(await examine()).toMatchObject({ ok: false });
  });
});

test("an entry whose response was lost is written once, and the chain goes on", async () => {
  let lost = 0;
  const { rota, clock, storage } = await openTestRota({
    meddler: {
      after: ({ operation }) => {
        if (operation === "audit.append" && ++lost === 1) throw away();
      },
    },
  });
  rota.audit.record({ route: "POST /tasks", subject: "tsk_1" });
  rota.audit.record({ route: "POST /tasks", subject: "tsk_2" });
  await clock.advance(100);
  await clock.advance(10_000);
  await rota.audit.write({ route: "POST /tasks", subject: "tsk_3" });
  const { entries } = await storage.audit.list({ tenant: "default", limit: 10 });
  expect(entries.map(({ subject, number }) => [subject, number])).toEqual([
    ["tsk_3", 3],
    ["tsk_2", 2],
    ["tsk_1", 1],
  ]);
  expect((await rota.doctor()).ok).toBe(true);
});

test("each start of a process is a chain of its own", async () => {
  const clock = new ManualClock();
  const opened = await openSqliteFile(clock);
  const keptOpen = { ...opened.storage, close: async () => {} };
  for (const subject of ["first", "second"]) {
    const { rota } = await openTestRota({ clock, storage: keptOpen });
    await rota.audit.write({ route: "POST /tasks", subject });
    await rota.stop();
  }
  const { rota } = await openTestRota({ clock, storage: opened.storage });
  const check = (await rota.doctor()).checks.find(({ name }) => name === "audit");
  expect(check?.summary).toContain("2 entries in 2 chains");
});
