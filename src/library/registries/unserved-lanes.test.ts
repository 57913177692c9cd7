import { expect, test } from "vitest";
import { openTestRota } from "../../../test/support/rota.ts";
import { openMemory } from "../../../test/support/storages.ts";
import { ManualClock } from "../../testing/manual-clock.ts";

test("a lane that the configuration lost is named once, with what waits in it and what to write", async () => {
  const clock = new ManualClock();
  const storage = await openMemory(clock);
  const before = await openTestRota({ clock, storage, options: { lanes: { crawl: 2, mail: 1, empty: 1 } } });
  await before.rota.tasks.submitMany([
    { lane: "crawl", message: "a" },
    { lane: "crawl", message: "b" },
    { lane: "mail", message: "c" },
    { lane: "main", message: "d" },
  ]);

  const after = await openTestRota({ clock, storage });
  await after.rota.start();
  expect(after.log.messages("warn").toSorted()).toEqual([
    '1 task waits in the lane "mail", which this process does not have: write `lanes.mail` in the configuration',
    '2 tasks wait in the lane "crawl", which this process does not have: write `lanes.crawl` in the configuration',
  ]);
  expect(after.log.lines[0]?.fields).toMatchObject({ lane: expect.any(String), waiting: expect.any(Number) });
});
