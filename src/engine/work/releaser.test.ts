import { expect, test } from "vitest";
import { openTestRota } from "../../../test/support/rota.ts";
import { until } from "../../testing/signals.ts";

test("a thousand dependants of one task follow its end and its retry, however few those can reach themselves", async () => {
  const { rota, clock } = await openTestRota({
    options: { scheduler: { maxQueueSize: 10_000, maxPerAgent: 10_000 } },
  });
  await rota.start();
  const parent = await rota.tasks.submit({ payload: "first", runAt: new Date(clock.now() + 3_600_000) });
  const children = await rota.tasks.submitMany(
    Array.from({ length: 1_000 }, (_, payload) => ({ payload, dependsOn: [parent.taskId] })),
  );
  await rota.tasks.cancel(parent.taskId);
  const ended = await Promise.all(children.map(({ taskId }) => rota.tasks.wait(taskId)));
  expect(new Set(ended.map(({ state, error }) => `${state}: ${error}`))).toEqual(
    new Set([`cancelled: dependency ${parent.taskId} cancelled`]),
  );
  await rota.tasks.retry(parent.taskId, { dependants: true });
  await until(async () => (await rota.tasks.counts()).counts.waiting_dependency === 1_000, "all to be back");
});
