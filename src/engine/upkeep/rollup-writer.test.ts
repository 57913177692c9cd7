import { expect, test } from "vitest";
import { makeEngine, manyTasks } from "../../../test/support/engine.ts";
import { openMemory } from "../../../test/support/storages.ts";
import { silentLog } from "../../model/log.ts";
import type { Storage } from "../../storage/storage.ts";
import { ManualClock, settle } from "../../testing/manual-clock.ts";
import { RollupWriter } from "./rollup-writer.ts";

async function submitted(storage: Storage, tenant: string): Promise<number> {
  const { rows } = await storage.rollups.read({
    tenant,
    kind: "lane",
    step: 60,
    from: 0,
    to: 9e15,
    limit: 100,
  });
  return rows.reduce((sum, row) => sum + row.submitted, 0);
}

test("counts what happened within five seconds, and looks at nothing while nothing happens", async () => {
  let advances = 0;
  const { engine, storage, clock } = await makeEngine({
    getsSignals: true,
    meddler: {
      before: ({ operation }) => {
        if (operation === "rollups.advance") advances += 1;
      },
    },
  });
  await engine.start();
  await clock.advance(10_000);
  advances = 0;
  const tasks = manyTasks(10);
  await engine.intake.addMany(tasks);
  await clock.advance(5_000);
  expect(await submitted(storage, tasks[0]?.tenant ?? "")).toBe(10);
  expect(advances).toBeLessThanOrEqual(3);
  advances = 0;
  await clock.advance(50_000);
  expect(advances).toBeLessThanOrEqual(1);
});

test("pauses four times as long as a slice took while there is more, and gives way while another node counts", async () => {
  const clock = new ManualClock();
  const storage = await openMemory(clock);
  const answers = [
    { events: 10, more: true },
    { events: 0, more: true },
    { events: 5, more: false },
  ];
  const at: number[] = [];
  const rollups = {
    ...storage.rollups,
    advance: async () => {
      at.push(clock.now());
      await clock.advance(20);
      return answers.shift() ?? { events: 0, more: false };
    },
  };
  const writer = new RollupWriter({
    clock,
    log: silentLog,
    random: () => 0,
    storage: { ...storage, rollups },
  });
  const begun = clock.now();
  writer.start();
  await settle();
  await clock.advance(10_000);
  await writer.stop();
  expect(at.map((moment) => moment - begun)).toEqual([0, 100, 1_120]);
});
