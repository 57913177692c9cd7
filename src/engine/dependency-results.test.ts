import { expect, test } from "vitest";
import { away, meddle, openMemory } from "../../test/support/storages.ts";
import { newTask } from "../storage/conformance/world.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { readDependencies } from "./dependency-results.ts";

test("a storage that is away is waited for until it answers, or the attempt is over", async () => {
  const clock = new ManualClock();
  let broken = true;
  const storage = meddle(await openMemory(clock), {
    before: () => {
      if (broken) throw away();
    },
  });
  const record = { seq: 1, spec: newTask().spec };
  const stop = new AbortController();
  const params = { storage, clock, random: () => 0, record };
  const reading = readDependencies({ ...params, signal: new AbortController().signal });
  const stopped = expect(readDependencies({ ...params, signal: stop.signal })).rejects.toBe("over");
  await clock.advance(5_000);
  stop.abort("over");
  await clock.advance(5_000);
  await stopped;
  broken = false;
  await clock.advance(5_000);
  expect(await reading).toEqual({ results: [], bytes: 0 });
});
