import { expect, test } from "vitest";
import { RecordingLog } from "../../../test/support/recording-log.ts";
import { openMemory } from "../../../test/support/storages.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { Recounter } from "./recounter.ts";

test("looks at one line a minute, and reports a counter that is off", async () => {
  const clock = new ManualClock();
  const log = new RecordingLog();
  const storage = await openMemory(clock);
  const asked: number[] = [];
  const fault = { counter: "lane.inflight", stored: 3, counted: 2 };
  const counters = {
    ...storage.counters,
    recountOne: async ({ random }: { random: number }) => {
      asked.push(random);
      return asked.length === 2 ? [fault] : [];
    },
  };
  const recounter = new Recounter({ clock, log, random: () => 0.25, storage: { ...storage, counters } });
  recounter.start();
  await clock.advance(120_000);
  await recounter.stop();
  expect(asked).toEqual([0.25, 0.25, 0.25]);
  expect(log.lines).toEqual([
    { level: "error", message: "a counter was wrong and was corrected", fields: fault },
  ]);
});
