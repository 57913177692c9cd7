import { expect, test } from "vitest";
import { makeEngine, manyTasks } from "../../../test/support/engine.ts";
import { DAY, makeScheduler, SECOND } from "../../../test/support/schedules.ts";
import type { Call } from "../../../test/support/storages.ts";
import type { ScheduleRecord } from "../../storage/storage.ts";
import { settle } from "../../testing/manual-clock.ts";

test("deletes what has ended long enough ago, and nothing else", async () => {
  const { engine, clock, states } = await makeEngine({
    concurrency: { tasks: 100 },
    executor: () => (ended++ < 10 ? null : new Promise(() => {})),
  });
  let ended = 0;
  await engine.start();
  await engine.intake.addMany(manyTasks(15));
  await clock.advance(59_000);
  expect(await states()).toEqual({ done: 10, running: 5 });
  await clock.advance(11_000);
  expect(await states()).toEqual({ running: 5 });
});

test("works in slices with a pause between them, however much there is", async () => {
  const prunes: Call[] = [];
  const { engine, clock, states } = await makeEngine({
    concurrency: { tasks: 2_000 },
    meddler: { before: (call) => void (call.operation === "tasks.prune" && prunes.push(call)) },
  });
  await engine.start();
  await engine.intake.addMany(manyTasks(2_000));
  await settle();
  await clock.advance(69_990);
  prunes.length = 0;
  await clock.advance(10);
  expect(prunes.length).toBeLessThanOrEqual(2);
  await clock.advance(10_000);
  expect(await states()).toEqual({});
  expect(prunes.every(({ params }) => params.limit === 500)).toBe(true);
});

test("keeps the runs of schedules for longer than their tasks, then deletes them in slices, too", async () => {
  const slices: number[] = [];
  const { engine, clock, create, runs, states, storage } = await makeScheduler({
    meddler: {
      before: ({ operation, params }) => {
        if (operation === "schedules.prune") slices.push(params.limit);
      },
    },
  });
  const { tenant, id } = await create({ everyMs: 1_000 * DAY });
  await engine.start();
  await engine.scheduleTicker.runNow({ tenant, id, mode: "force" });
  await settle();
  const { revision, nextFireAt } = (await storage.schedules.get({ tenant, id })) as ScheduleRecord;
  const moment = { dueAt: clock.now(), firstDueAt: clock.now(), moments: 1, forced: true };
  const failed = { ...moment, status: "failed", requestId: "req_1", error: "x" } as const;
  await storage.schedules.fire({
    fires: [{ tenant, id, revision, nextFireAt, pauses: null, runs: Array(1_000).fill(failed) }],
  });
  clock.set(clock.now() + 89 * DAY);
  await clock.advance(20 * SECOND);
  expect(await states()).toEqual({});
  expect(await runs()).toHaveLength(1_001);
  clock.set(clock.now() + DAY);
  await clock.advance(20 * SECOND);
  expect(await runs()).toEqual([]);
  expect(new Set(slices)).toEqual(new Set([500]));
});
