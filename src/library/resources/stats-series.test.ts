import { expect, test } from "vitest";
import { openTestRota } from "../../../test/support/rota.ts";

test("the twenty busiest agents have series of their own, and all others one together", async () => {
  const { rota, clock } = await openTestRota();
  await rota.start();
  const runAt = "2100-01-01T00:00:00Z";
  for (let agent = 1; agent <= 25; agent += 1) {
    const tasks = Array.from({ length: agent }, (_, payload) => ({
      agentId: `agent-${agent}`,
      payload,
      runAt,
    }));
    await rota.tasks.submitMany(tasks);
  }
  await clock.advance(5_000);
  const { series } = await rota.statsSeries({ metrics: ["submitted"], by: "agent" });
  const sums = series.map(({ key, points }) => [key, (points as number[]).reduce((sum, n) => sum + n, 0)]);
  expect(sums).toEqual([
    ...Array.from({ length: 20 }, (_, n) => [`agent-${25 - n}`, 25 - n]),
    ["other", 1 + 2 + 3 + 4 + 5],
  ]);
});

test("many rows are read in slices, and add up", async () => {
  const { rota, clock } = await openTestRota();
  await rota.start();
  const runAt = "2100-01-01T00:00:00Z";
  for (let minute = 0; minute < 25; minute += 1) {
    const tasks = Array.from({ length: 60 }, (_, n) => ({ agentId: `agent-${n}`, payload: n, runAt }));
    for (let start = 0; start < 60; start += 30) await rota.tasks.submitMany(tasks.slice(start, start + 30));
    await clock.advance(60_000);
  }
  const { series } = await rota.statsSeries({ metrics: ["submitted"], by: "agent" });
  expect(series).toHaveLength(21);
  const total = series.flatMap(({ points }) => points as number[]).reduce((sum, n) => sum + n, 0);
  const submitted = (await rota.stats()).metrics.tasksSubmitted;
  expect(total).toBe(submitted);
});
