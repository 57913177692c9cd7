import { describe, expect, test } from "vitest";
import { openTestRota } from "./support/rota.ts";

const ROOMY = {
  maxQueueSize: 20_000,
  maxPerAgent: 20_000,
  workerCount: 500,
  maxInflight: 500,
  maxPerAgentInflight: 500,
};

describe("tasks that depend on others", () => {
  test("run after them, in the order of the graph, and are handed what those resulted in", async () => {
    const { rota } = await openTestRota();
    const order: unknown[] = [];
    rota.agent("worker", ({ payload, dependencies }) => {
      order.push([payload, dependencies?.map(({ result }) => result)]);
      return `${payload}!`;
    });
    const { taskIds, tasks } = await rota.tasks.submitBatch({
      agentId: "worker",
      tasks: [
        { key: "end", payload: "end", dependsOn: ["left", "right"] },
        { key: "left", payload: "left", dependsOn: ["start"] },
        { key: "right", payload: "right", dependsOn: ["start"] },
        { key: "start", payload: "start" },
      ],
    });
    expect(tasks.map(({ key, state }) => [key, state])).toEqual([
      ["end", "waiting_dependency"],
      ["left", "waiting_dependency"],
      ["right", "waiting_dependency"],
      ["start", "queued"],
    ]);
    await rota.start();
    const end = await rota.tasks.wait(taskIds[0] ?? "");
    expect(end).toMatchObject({ state: "done", result: "end!", dependsOn: [taskIds[1], taskIds[2]] });
    expect(order).toEqual([
      ["start", undefined],
      ["left", ["start!"]],
      ["right", ["start!"]],
      ["end", ["left!", "right!"]],
    ]);
    expect(end).not.toHaveProperty("dependencies");
  });

  test("are cancelled when one fails for good, and not while it is retried", async () => {
    const { rota, clock } = await openTestRota();
    let tries = 0;
    rota.agent("flaky", () => {
      tries += 1;
      throw new Error(`no ${tries}`);
    });
    await rota.start();
    const retryPolicy = { maxRetries: 1, backoffMs: 1_000 };
    const first = await rota.tasks.submit({ agentId: "flaky", payload: 1, retryPolicy });
    const second = await rota.tasks.submit({ payload: 2, dependsOn: [first.taskId] });
    const third = await rota.tasks.submit({ payload: 3, dependsOn: [second.taskId] });
    while ((await rota.tasks.get(first.taskId)).state !== "delayed") await clock.advance(1);
    expect((await rota.tasks.get(second.taskId)).state).toBe("waiting_dependency");
    await clock.advance(1_000);
    expect(await rota.tasks.wait(third.taskId)).toMatchObject({
      state: "cancelled",
      error: `dependency ${first.taskId} failed`,
    });
    expect(tries).toBe(2);
  });

  test.each([
    ["wide", 10_000, 0],
    ["deep", 1_000, 1],
  ])("resolve a %s graph of %i", async (_name, count, step) => {
    const { rota } = await openTestRota({ options: { scheduler: ROOMY } });
    const submitted = await rota.tasks.submitMany(
      Array.from({ length: count }, (_, n) => ({
        key: `n${n}`,
        payload: n,
        ...(n === 0 ? {} : { dependsOn: [`n${step === 0 ? 0 : n - 1}`] }),
      })),
    );
    await rota.start();
    const last = await Promise.all(submitted.slice(-500).map(({ taskId }) => rota.tasks.wait(taskId)));
    expect(new Set(last.map(({ state }) => state))).toEqual(new Set(["done"]));
    expect(await rota.tasks.counts()).toEqual({ counts: { done: count }, total: count });
  });

  test("fall like dominoes in a chain of ten thousand", async () => {
    const { rota } = await openTestRota({ options: { scheduler: ROOMY } });
    const chain = await rota.tasks.submitMany(
      Array.from({ length: 10_000 }, (_, n) => ({
        key: `n${n}`,
        payload: n,
        ...(n === 0 ? { runAt: "2100-01-01T00:00:00Z" } : { dependsOn: [`n${n - 1}`] }),
      })),
    );
    await rota.start();
    await rota.tasks.cancel(chain[0]?.taskId ?? "");
    expect(await rota.tasks.wait(chain.at(-1)?.taskId ?? "")).toMatchObject({
      state: "cancelled",
      error: `dependency ${chain[0]?.taskId} cancelled`,
    });
    expect(await rota.tasks.counts()).toEqual({ counts: { cancelled: 10_000 }, total: 10_000 });
  });

  test("cannot depend on one with an idempotency key that is submitted with them", async () => {
    const { rota } = await openTestRota();
    const tasks = [
      { payload: 1, dependsOn: ["a"] },
      { key: "a", payload: 2, idempotencyKey: "k" },
    ];
    await expect(rota.tasks.submitBatch({ tasks })).rejects.toMatchObject({
      code: "invalid_field",
      details: { field: "idempotencyKey", index: 1 },
    });
  });

  test("wait for an unknown one until they are cancelled", async () => {
    const { rota } = await openTestRota();
    await rota.start();
    const { taskId, state, position } = await rota.tasks.submit({ payload: 1, dependsOn: ["tsk_unknown"] });
    expect([state, position]).toEqual(["waiting_dependency", 0]);
    await rota.tasks.cancel(taskId);
    expect((await rota.tasks.get(taskId)).state).toBe("cancelled");
  });
});
