import { expect, test } from "vitest";
import { RecordingLog } from "../../../test/support/recording-log.ts";
import { asSharedStorage, meddle, openMemory } from "../../../test/support/storages.ts";
import { newTask, ROOMY } from "../../storage/conformance/world.ts";
import type { NewBulk, Storage } from "../../storage/storage.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { BulkWorker } from "./bulk-worker.ts";

async function world() {
  const clock = new ManualClock();
  const calls: string[] = [];
  const turns: string[] = [];
  const memory = await openMemory(clock);
  const unbounded = {
    total: null,
    perAgent: null,
    perTenant: null,
    strategy: "fair-fifo",
    agingMs: 0,
  } as const;
  await memory.lanes.configure({ lanes: [{ name: "tasks", ...unbounded }] });
  const storage = meddle(memory, {
    after: ({ operation, params }) => {
      calls.push(operation);
      if (operation === "bulks.step") turns.push(`${params.tenant} ${params.ids.length}`);
    },
  });
  const worker = (shared: Storage = storage) =>
    new BulkWorker({
      clock,
      log: new RecordingLog(),
      random: () => 0.5,
      storage: shared,
      onCancelled: () => {},
    });
  async function submit(tenant: string, count: number): Promise<void> {
    const tasks = Array.from({ length: count }, () => newTask({ tenant }));
    await memory.tasks.insert({ tasks, limits: ROOMY });
  }
  async function add(id: string, tenant: string, more: Partial<NewBulk> = {}): Promise<void> {
    const bounds = { limit: 100_000, matched: 0, lastSeq: 1e9, cursor: 1e9, runningMax: 10, keptMax: 10 };
    const selection = { states: ["queued"], order: "newest" } as const;
    const rest = { action: "cancel", filter: null, ids: null, by: null, requestedAt: clock.now() } as const;
    await memory.bulks.add({ id, tenant, selection, ...bounds, ...rest, ...more });
  }
  return { clock, calls, turns, storage, worker, submit, add, memory };
}

test("yields to other tenants after each slice of 100, and ends at the limit", async () => {
  const { turns, worker, submit, add, memory } = await world();
  await submit("acme", 240);
  await submit("zeta", 120);
  await add("a", "acme");
  await add("z", "zeta", { limit: 110 });
  const bulks = worker();
  for (let tick = 0; tick < 5; tick += 1) expect(await bulks.tick()).toBe(0);
  expect(turns).toEqual(["acme 100", "zeta 100", "acme 100", "zeta 10", "acme 40"]);
  expect(await memory.bulks.get({ tenant: "acme", id: "a" })).toMatchObject({ state: "done", done: 240 });
  expect(await memory.bulks.get({ tenant: "zeta", id: "z" })).toMatchObject({ state: "done", done: 110 });
  expect((await memory.tasks.counts({ tenant: "zeta" })).queued).toBe(10);
});

test("looks once a minute while nothing runs, and no further", async () => {
  const { calls, worker } = await world();
  expect(await worker().tick()).toBe(60_000);
  expect(calls).toEqual(["bulks.claim"]);
});

test("another node continues the bulk action of a dead node once its lease is over", async () => {
  const { clock, storage, worker, submit, add, memory } = await world();
  await submit("acme", 140);
  await add("a", "acme");
  const lost = asSharedStorage(
    meddle(storage, {
      before: ({ operation }) => {
        if (operation === "bulks.step") throw new Error("killed");
      },
    }),
  );
  await expect(worker(lost).tick()).rejects.toThrow("killed");
  const other = worker(asSharedStorage(storage));
  expect(await other.tick()).toBe(15_000);
  await clock.advance(15_000);
  expect(await other.tick()).toBe(0);
  expect(await other.tick()).toBe(0);
  expect(await memory.bulks.get({ tenant: "acme", id: "a" })).toMatchObject({
    state: "done",
    done: 140,
    skipped: 0,
  });
});
