import { expect, onTestFinished, test } from "vitest";
import { newTask, ROOMY } from "../../../test/support/engine.ts";
import { RecordingLog } from "../../../test/support/recording-log.ts";
import { openMemory } from "../../../test/support/storages.ts";
import { eventSource } from "../../events/event-log.ts";
import { Redactor } from "../../model/redactor.ts";
import type { Storage, TenantRecord } from "../../storage/storage.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { SecretBox } from "../registries/secret-box.ts";
import { TenantCatalogue } from "../registries/tenant-catalogue.ts";
import { RestoreWatch } from "./restore-watch.ts";

async function open(clock: ManualClock): Promise<Storage> {
  const storage = await openMemory(clock);
  await storage.lanes.configure({
    lanes: [
      { name: "tasks", total: null, perAgent: null, perTenant: null, strategy: "fair-fifo", agingMs: 0 },
    ],
  });
  return storage;
}

function add(storage: Storage, ...ids: string[]) {
  return storage.tasks.insert({ tasks: ids.map((id) => newTask({ id })), limits: ROOMY });
}

async function watch() {
  const clock = new ManualClock();
  const lost = await open(clock);
  const restored = await open(clock);
  let current = lost;
  const events = new Proxy(lost.events, { get: (_group, name) => Reflect.get(current.events, name) });
  let restores = 0;
  const log = new RecordingLog();
  const storage = { ...lost, events };
  const watching = new RestoreWatch({
    clock,
    log,
    random: () => 0.5,
    storage,
    source: eventSource({ storage, redactor: () => new Redactor([]) }),
    onRestored: () => {
      restores += 1;
    },
  });
  onTestFinished(() => watching.stop());
  watching.start();
  const restore = () => {
    current = restored;
  };
  return { clock, lost, restored, log, restores: () => restores, restore };
}

test.each([0, 1, 5])(
  "a restore is noticed while no reader follows events, with %i written since",
  async (count) => {
    const { clock, lost, restored, restore, restores, log } = await watch();
    await add(lost, "a");
    await add(restored, "a");
    await clock.advance(1_000);
    await add(lost, "b");
    await clock.advance(2_000);
    const ids = Array.from({ length: count }, (_, index) => `again-${index}`);
    if (count > 0) await add(restored, ...ids);
    restore();
    await clock.advance(5_000);
    expect([restores(), log.messages("warn")]).toEqual([
      1,
      ["the database was restored to an earlier state; reading everything again"],
    ]);
  },
);

test("what happens as always is no restore", async () => {
  const { clock, lost, restores } = await watch();
  await clock.advance(2_000);
  await add(lost, "a", "b");
  await clock.advance(2_000);
  await lost.tasks.cancel({ tenant: "default", ids: ["a", "b"], error: null });
  await clock.advance(10_000);
  await lost.tasks.prune({ retentionMs: 1_000, rejectedMax: 0, limit: 100 });
  await clock.advance(10_000);
  await add(lost, "c");
  await clock.advance(2_000);
  expect(restores()).toBe(0);
});

test("a tenant whose deletion was taken back is there again", async () => {
  const clock = new ManualClock();
  const storage = await openMemory(clock);
  onTestFinished(() => storage.close());
  const [known] = await storage.tenants.list();
  if (known === undefined) throw new Error("There is a tenant.");
  let tenants: TenantRecord[] = [known, { ...known, id: "ten_back" }];
  const catalogue = new TenantCatalogue({
    clock,
    log: new RecordingLog(),
    random: () => 0.5,
    storage: { ...storage, tenants: { ...storage.tenants, list: async () => tenants } },
    box: new SecretBox(undefined),
    onAdded: () => {},
    onGone: () => {},
  });
  await catalogue.read();
  catalogue.close("ten_back");
  await catalogue.read();
  expect(() => catalogue.checkNotGone("ten_back"), "it is being deleted").toThrow("tenant not found");
  tenants = [known];
  await catalogue.read();
  expect(() => catalogue.checkNotGone("ten_back")).toThrow("tenant not found");
  tenants = [known, { ...known, id: "ten_back" }];
  await catalogue.read();
  expect(() => catalogue.checkNotGone("ten_back")).not.toThrow();
});
