import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { systemClock } from "../../src/clock/system-clock.ts";
import type { Rota } from "../../src/interface/rota.ts";
import type { Tenant } from "../../src/interface/tenants.ts";
import { resolveSettings } from "../../src/library/settings/settings.ts";
import type { Clock } from "../../src/model/clock.ts";
import { DELIVERY_STATUSES } from "../../src/model/delivery.ts";
import { TASK_STATES } from "../../src/model/task-state.ts";
import { joinRota } from "../../src/rota.ts";
import { readMigrations } from "../../src/storage/migrations.ts";
import { openPostgres } from "../../src/storage/postgres/connection/open.ts";
import { openSqlite } from "../../src/storage/sqlite/connection/open.ts";
import type { Storage } from "../../src/storage/storage.ts";
import { eventually } from "../end-to-end/server-process.ts";
import { createTestDatabase } from "../postgres/database.ts";
import { serve } from "../support/http-server.ts";
import { loadPostgres } from "./dump-postgres.ts";
import { loadSqlite } from "./dump-sqlite.ts";
import {
  DRIVERS,
  type Driver,
  type Fixture,
  OPTIONS,
  RECEIVER_URL,
  readFixtures,
  SOON_MS,
} from "./fixture.ts";
import { readAll } from "./read-all.ts";

/** Tables that only large numbers, deleting, or nodes that differ put something into. */
const EMPTY_UNTIL_LATER = [
  "release",
  "task_of_line",
  "task_of_tenant",
  "task_span",
  "stored_bytes",
  "high_water",
  "pool",
  "unserved",
  "audit_anchor",
  "exchange_request",
];
/**
 * The schema of the first release, which every later version has to open. Its fixtures are never removed; schemas before it
 * were never released.
 */
const FIRST_RELEASED: Readonly<Record<Driver, number>> = { sqlite: 9, postgres: 9 };

for (const driver of DRIVERS) {
  const fixtures = readFixtures(driver);

  test(`every migration of ${driver} is kept with data in it (else: npm run keep:schema)`, () => {
    const folder = new URL(`../../src/storage/${driver}/migrations/`, import.meta.url);
    expect(fixtures.at(-1)?.version).toBe(readMigrations(folder).length);
  });

  test(`the upgrade of ${driver} starts at the first released schema`, () => {
    expect(fixtures[0]?.version).toBe(FIRST_RELEASED[driver]);
  });

  describe.each(fixtures)("a database that schema $version of $driver left behind", (fixture) => {
    test("holds something of everything", () => {
      const { work } = fixture.contents.everything;
      const { tasks = [], deliveries = [], runs = [] } = work["default"] ?? {};
      const states = tasks.map(({ state }) => state);
      for (const state of TASK_STATES) if (state !== "assigned") expect(states).toContain(state);
      expect(new Set(deliveries.map(({ status }) => status))).toEqual(new Set(DELIVERY_STATUSES));
      expect(runs.map(({ status }) => status)).toEqual(
        expect.arrayContaining(["running", "succeeded", "skipped"]),
      );
      const made = [...fixture.dump.matchAll(/^create table "?(\w+)/gim)].map(([, name = ""]) => name);
      const empty = made.filter((name) => !fixture.dump.includes(`\ninsert into ${name} (`));
      expect(EMPTY_UNTIL_LATER).toEqual(expect.arrayContaining(empty));
    });

    test("returns all that it returned then", async () => {
      const rota = await open(fixture);
      const { everything } = fixture.contents;
      const countsOf = (tenantId: string) => {
        const { events, notifications } = everything.work[tenantId] ?? { events: [], notifications: [] };
        return { events: events.length, notifications: notifications.length };
      };
      // A later version may return more than that.
      expect(await readAll(rota, countsOf)).toMatchObject({
        ...everything,
        tenants: everything.tenants.map((tenant) => withDefaults(tenant as Tenant)),
      });
    });

    test("keeps what signs webhooks, or the configured secret for 7 days where tenants had none of their own", async () => {
      const { dump, contents } = fixture;
      const storage = await load(fixture, clockOf(fixture));
      onTestFinished(() => storage.close());
      const ids = contents.everything.tenants.map((tenant) => (tenant as Tenant).id);
      const secrets = await storage.tenants.webhookSecrets();
      if (dump.includes("\ninsert into webhook_secret (")) {
        expect(secrets.filter(({ secret, expiresAt }) => secret !== null && expiresAt === null)).toHaveLength(
          2,
        );
        return;
      }
      expect(secrets.map(({ tenant, secret }) => [tenant, secret])).toEqual(
        ids.filter((id) => id !== "default").map((id) => [id, null]),
      );
      for (const { expiresAt } of secrets) {
        expect((expiresAt ?? 0) - Date.now()).toBeGreaterThan(7 * 24 * 3_600_000 - 600_000);
        expect((expiresAt ?? 0) - Date.now()).toBeLessThanOrEqual(7 * 24 * 3_600_000 + 1_000);
      }
    });

    test("admits callers that had a key", async () => {
      const rota = await open(fixture);
      for (const [role, key] of Object.entries(fixture.contents.keys))
        expect(await rota.keys.callerOf(key)).toMatchObject({ role });
    });

    test("goes on where it was: ends what ran and waited, and does what has become due", async () => {
      const callbacks: string[] = [];
      const url = await serve((_, response, body) => {
        callbacks.push(body);
        response.end();
      });
      const rota = await open({ ...fixture, dump: fixture.dump.replaceAll(RECEIVER_URL, `${url}/`) });
      expect((await rota.doctor()).checks.filter(({ ok }) => !ok)).toEqual([]);
      await rota.start();

      await eventually(async () => !(await isWaiting(rota)), "everything to end");
      await eventually(async () => callbacks.length > 0, "the callback that was still to come");
      const ends = await endsOf(rota);
      expect(ends).toMatchObject({
        lost: "failed: worker lost",
        "tried again": "done",
        "waits for its retry": "done",
        "may give way": "done",
        queued: "done",
        "waits for another": "done",
        "at its time": "done",
        first: "done",
        second: "done",
        "are you there?": "done",
        "hello?": "done",
      });
      const runsOf = async (name: string) =>
        (await rota.schedules.list()).schedules.find((each) => each.name === name)?.run_count;
      // Each has had a due time meanwhile.
      await expect.poll(() => runsOf("rounds")).toBe(2);
      await expect.poll(() => runsOf("once")).toBe(1);

      const still = (await rota.tenants.list()).tenants.find(({ name }) => name === "Still");
      const theirs = rota.tenant(still?.id ?? "");
      // What has become due meanwhile waits for its tenant.
      expect((await theirs.tasks.counts()).counts).toMatchObject({ done: 1 });
      await rota.tenants.enable(still?.id ?? "");
      await eventually(async () => (await theirs.tasks.counts()).counts.done === 2, "what was held to go on");
      expect((await rota.doctor()).checks.filter(({ ok }) => !ok)).toEqual([]);
    });
  });
}

/** A limit that was not given then is shown as the default that holds now. */
function withDefaults(tenant: Tenant): Tenant {
  const { maxSchedules = null, maxSessions = null } = tenant.limits as Partial<Tenant["limits"]>;
  const shown =
    tenant.id === "default"
      ? { maxSchedules, maxSessions }
      : { maxSchedules: maxSchedules ?? 1_000, maxSessions: maxSessions ?? 10_000 };
  return { ...tenant, limits: { ...tenant.limits, ...shown } };
}

async function isWaiting(rota: Rota): Promise<boolean> {
  const { counts } = await rota.tasks.counts();
  const { waiting_dependency = 0, delayed = 0, queued = 0, running = 0 } = counts;
  return waiting_dependency + delayed + queued + running > 0;
}

/** How each task of the default tenant ended, by what it was to do. */
async function endsOf(rota: Rota): Promise<Record<string, string>> {
  const { tasks } = await rota.tasks.list({ limit: 1_000 });
  return Object.fromEntries(
    tasks.map(({ payload, instruction, message, state, error }) => [
      String(instruction ?? message ?? payload),
      error === undefined ? state : `${state}: ${error}`,
    ]),
  );
}

/** Time as it was a little after what was to happen soon: nothing is older by how long the database lay in a drawer. */
function clockOf({ contents }: Fixture): Clock {
  const behindMs = Date.now() - (contents.madeAt + SOON_MS + 60_000);
  return { ...systemClock, now: () => systemClock.now() - behindMs };
}

async function open(fixture: Fixture): Promise<Rota> {
  const clock = clockOf(fixture);
  const storage = await load(fixture, clock);
  const options = { ...OPTIONS, clock };
  const rota = await joinRota({ options, settings: resolveSettings(options, { clock }), storage });
  onTestFinished(() => rota.stop({ graceMs: 0 }));
  rota.agent("worker", (task) => ({ did: task.taskId }));
  return rota;
}

/** Makes a database of a dump, and opens it with the current program. */
async function load({ driver, dump }: Fixture, clock: Clock): Promise<Storage> {
  if (driver === "sqlite") {
    const folder = mkdtempSync(join(tmpdir(), "rota-upgrade-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const path = join(folder, "rota.db");
    loadSqlite(path, dump);
    return openSqlite({ path, clock });
  }
  const { url, drop } = await createTestDatabase();
  onTestFinished(drop);
  await loadPostgres(url, dump);
  const storage = await openPostgres({ url, clock });
  // As another node would find it some time after they ended, without waiting for that.
  for (const { node, beat } of await storage.nodes.list()) await storage.nodes.markDead({ node, beat });
  return storage;
}
