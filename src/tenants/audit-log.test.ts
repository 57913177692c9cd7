import { expect, test } from "vitest";
import { openTestRota } from "../../test/support/rota.ts";
import { asSharedStorage, away, openMemory } from "../../test/support/storages.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { CHAIN_START, linked } from "./audit-chain.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;

test("what is noted is written down together, and what is written is durable at once, in order", async () => {
  const appended: number[] = [];
  const { rota, clock, storage } = await openTestRota({
    meddler: {
      before: ({ operation, params }) => {
        if (operation === "audit.append") appended.push(params.entries.length);
      },
    },
  });
  for (const subject of ["1", "2", "3"]) rota.audit.record({ route: "POST /tasks", subject });
  expect(appended).toEqual([]);
  await clock.advance(100);
  expect(appended).toEqual([3]);
  rota.audit.record({ route: "POST /tasks", subject: "4" });
  await rota.audit.write({ route: "POST /v1/keys", subject: "5", keyId: "key_1" });
  expect(appended).toEqual([3, 2]);
  const { entries } = await storage.audit.list({ tenant: "default", limit: 10 });
  expect(entries.map(({ subject }) => subject)).toEqual(["5", "4", "3", "2", "1"]);
});

test("what could not be written rejects for the caller that waits for it, and is tried again for all others", async () => {
  let isAway = true;
  const { rota, clock } = await openTestRota({
    meddler: {
      before: ({ operation }) => {
        if (isAway && operation === "audit.append") throw away();
      },
    },
  });
  rota.audit.record({ route: "POST /tasks", subject: "noted" });
  const written = rota.audit.write({ route: "POST /v1/keys", subject: "waited for" });
  await expect(written).rejects.toMatchObject({ code: "storage_unavailable" });
  isAway = false;
  await clock.advance(1_000);
  const { entries } = await rota.audit.list();
  expect(entries.map(({ subject }) => subject)).toEqual(["noted"]);
});

test("what was noted last is written down before a Rota has stopped", async () => {
  const clock = new ManualClock();
  const storage = asSharedStorage(await openMemory(clock));
  const { rota } = await openTestRota({ clock, storage });
  rota.audit.record({ route: "POST /tasks", subject: "last" });
  await rota.stop();
  expect((await storage.audit.list({ tenant: "default", limit: 1 })).entries).toMatchObject([
    { subject: "last" },
  ]);
});

test("it is kept as long as the configuration says", async () => {
  const { rota, clock, storage } = await openTestRota({ options: { audit: { retentionDays: 2 } } });
  const done = (days: number, subject: string) => ({
    at: clock.now() - days * DAY_MS,
    tenant: "default",
    keyId: null,
    route: "POST /tasks",
    subject,
    subjectDigest: null,
    subjectSalt: null,
    address: null,
    provenance: null,
    status: null,
    count: 1,
  });
  const entries = linked([done(3, "older"), done(2.1, "old"), done(1.9, "new")], "node-0", CHAIN_START);
  await storage.audit.append({ entries });
  await rota.start();
  await clock.advance(0);
  expect((await rota.audit.list()).entries).toMatchObject([{ subject: "new" }]);
});

test("it is read page by page, since a moment, and for one key", async () => {
  const { rota, clock } = await openTestRota();
  for (const keyId of ["key_1", "key_2", "key_1"]) {
    await rota.audit.write({ route: "POST /tasks", keyId });
    await clock.advance(1_000);
  }
  const first = await rota.audit.list({ keyId: "key_1", limit: 1 });
  expect([first.count, first.nextCursor]).toEqual([1, expect.any(String)]);
  const second = await rota.audit.list({ keyId: "key_1", limit: 1, cursor: first.nextCursor as string });
  expect([second.count, second.nextCursor]).toEqual([1, null]);
  const since = new Date(clock.now() - 2_000);
  expect((await rota.audit.list({ since: since.toISOString() })).count).toBe(2);
  expect((await rota.audit.list({ since: since.getTime() / 1_000 })).count).toBe(2);
});

test.each([
  [{ since: "yesterday" }, "since"],
  [{ since: -1 }, "since"],
  [{ since: null }, "since"],
  [{ keyId: 5 }, "keyId"],
  [{ limit: 0 }, "limit"],
  [{ cursor: "x" }, "cursor"],
  [{ keyid: "key_1" }, "keyid"],
])("a filter like %j is refused by name", async (filter, field) => {
  const { rota } = await openTestRota();
  await expect(rota.audit.list(filter as object)).rejects.toMatchObject({
    code: "invalid_field",
    details: { field },
  });
});
