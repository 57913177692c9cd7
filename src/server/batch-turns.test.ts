import { expect, test, vi } from "vitest";
import { openKeyedServer } from "../../test/support/keyed-server.ts";
import { type Call, meddle, openMemory } from "../../test/support/storages.ts";
import type { NewTask } from "../storage/storage.ts";
import { ManualClock, settle } from "../testing/manual-clock.ts";
import { Latch, until } from "../testing/signals.ts";

const BATCHES = 12;
const SIZE = 50;

/** Sends many batches of one tenant, then a task of another. Returns the tenants in the order in which their tasks are written. */
async function tenantsAsWritten({ hasSecondTenant }: { hasSecondTenant: boolean }): Promise<string[]> {
  const clock = new ManualClock();
  const written: string[] = [];
  const opened = new Latch();
  const storage = meddle(await openMemory(clock), {
    before: async ({ operation, params }: Call) => {
      if (operation !== "tasks.insert") return;
      written.push(...params.tasks.map(({ tenant }: NewTask) => tenant));
      await opened.opened;
    },
  });
  const { key, askWith, rota } = await openKeyedServer({ storage, clock, start: false });
  const own = await key({});
  const tenantId = hasSecondTenant ? (await rota.tenants.create({ name: "other" })).id : "default";
  const other = await key({ tenantId });
  const arrivals = vi.spyOn(rota.keys, "callerOf");
  const first = askWith(own, "/tasks", { json: { payload: null } });
  await until(() => written.length === 1);
  const json = { tasks: Array.from({ length: SIZE }, () => ({ payload: null })) };
  const batches = Array.from({ length: BATCHES }, () => askWith(own, "/tasks/batch", { json }));
  await until(() => arrivals.mock.calls.length === 1 + BATCHES);
  for (let turns = 0; turns < 20; turns += 1) await settle();
  const single = askWith(other, "/tasks", { json: { payload: null } });
  expect((await askWith(other, "/tasks/stats")).status).toBe(200);
  opened.open();
  for (const { status } of await Promise.all([first, single, ...batches])) expect(status).toBe(202);
  return written;
}

test("a task waits for a few batches of another tenant, not for all that were sent before", async () => {
  const written = await tenantsAsWritten({ hasSecondTenant: true });
  expect(written).toHaveLength(BATCHES * SIZE + 2);
  // The first task, and two batches.
  expect(written.findIndex((tenant) => tenant !== "default")).toBeLessThanOrEqual(1 + 2 * SIZE);
});

test("a tenant that is alone has all of its batches written together", async () => {
  expect(await tenantsAsWritten({ hasSecondTenant: false })).toHaveLength(BATCHES * SIZE + 2);
});
