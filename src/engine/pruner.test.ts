import { expect, test } from "vitest";
import { makeEngine, manyTasks } from "../../test/support/engine.ts";
import type { Call } from "../../test/support/storages.ts";
import { settle } from "../testing/manual-clock.ts";

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
