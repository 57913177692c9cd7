import { expect, test } from "vitest";
import { RecordingLog } from "../../../test/support/recording-log.ts";
import { meddle, openMemory } from "../../../test/support/storages.ts";
import { newWorker } from "../../storage/conformance/workers/workers.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { MetricsByTenant } from "../work/metrics-by-tenant.ts";
import { WorkerDispatcher } from "./worker-dispatcher.ts";
import { WorkerRecords } from "./worker-records.ts";
import { WorkerWatch } from "./worker-watch.ts";

/** `onWatched`: called once the storage has returned its workers, before the watch knows them. */
async function openWatch({ onWatched = () => {} }: { onWatched?: (watch: WorkerWatch) => void } = {}) {
  const clock = new ManualClock();
  const renewed: (readonly string[])[] = [];
  const storage = meddle(await openMemory(clock), {
    before: ({ operation, params }) => {
      if (operation === "workers.renew")
        renewed.push(params.signs.map(({ worker }: { worker: string }) => worker));
    },
    after: ({ operation }) => {
      if (operation === "workers.watch") onWatched(watch);
    },
  });
  const service = { clock, log: new RecordingLog(), random: () => 0.5, storage };
  const metrics = new MetricsByTenant();
  const dispatcher = new WorkerDispatcher({
    ...service,
    metrics,
    tenantPollsMax: () => 1,
    agentsVersion: () => 0,
    onRetryAt: () => {},
    onEnded: () => {},
    onAssigned: () => {},
    onPutBack: () => {},
  });
  const watch: WorkerWatch = new WorkerWatch({
    ...service,
    ...{ dispatcher, metrics },
    records: new WorkerRecords({ storage, clock }),
    storageNow: () => clock.now(),
    maxLost: () => 5,
    onRequeued: () => {},
    onFailed: () => {},
  });
  return { clock, storage, watch, renewed };
}

test("signs are written often enough for a short lease before the next look learns of it", async () => {
  const { clock, storage, watch, renewed } = await openWatch();
  const long = { id: "wrk_long", leaseMs: 15_000 };
  const short = { id: "wrk_short", leaseMs: 3_000 };
  await storage.workers.register(newWorker(long));
  watch.sign(long, { polls: false });
  await watch.tick();
  await clock.advance(1_000);
  await storage.workers.register(newWorker(short));
  watch.registered({ worker: short.id, name: "short", tenant: "acme", leaseMs: short.leaseMs, isNew: true });
  for (let second = 0; second < 3; second += 1) {
    watch.sign(short, { polls: false });
    await watch.tick();
    await clock.advance(1_000);
  }
  expect(renewed).toEqual([[long.id], [short.id], [short.id], [short.id]]);
});

test("an attempt that was assigned while the storage returned its workers is checked when it is due", async () => {
  const { clock, storage, watch } = await openWatch({
    onWatched: (each) => each.expect(clock.now() + 1_000),
  });
  await storage.workers.register(newWorker({ leaseMs: 15_000 }));
  expect(await watch.tick()).toBe(1_000);
});
