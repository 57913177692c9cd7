// How a program that embeds Rota tests itself: time stands still until the test moves it.
import { createTestRota, Latch, nextEvent } from "rota/testing";
import { expect, test } from "vitest";

test("an agent that hangs is given up after its timeout and tried again after the backoff", async () => {
  const { rota, clock } = await createTestRota();
  let calls = 0;
  rota.agent("slow", () => {
    calls += 1;
    return calls === 1 ? new Promise(() => {}) : "better now";
  });
  await rota.start();

  const started = nextEvent(rota, ({ type }) => type === "task.started");
  const { taskId } = await rota.tasks.submit({ agentId: "slow", instruction: "hurry", timeout: 5_000 });
  await started;
  await clock.advance(5_000);
  expect(await rota.tasks.get(taskId)).toMatchObject({ state: "delayed", retryCount: 1 });

  await clock.advance(1_000);
  expect(await rota.tasks.wait(taskId)).toMatchObject({ state: "done", result: "better now" });
  await rota.stop();
});

test("a task runs exactly as long as the test wants", async () => {
  const { rota } = await createTestRota();
  const latch = new Latch<string>();
  rota.agent("held", () => latch.opened);
  await rota.start();

  const { taskId } = await rota.tasks.submit({ agentId: "held", payload: {} });
  latch.open("the answer");
  expect((await rota.tasks.wait(taskId)).result).toBe("the answer");
  await rota.stop();
});
