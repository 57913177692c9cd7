import { expect, test } from "vitest";
import { openTestRota } from "../../../test/support/rota.ts";
import { createTenant } from "../../../test/support/tenants.ts";
import { Latch, until } from "../../testing/signals.ts";

function codes({ reasons }: { reasons: readonly { code: string; message: string }[] }): string[] {
  return reasons.map(({ code }) => code);
}

test("a task that could start is explained by what is in its way, and who is ahead", async () => {
  const { rota } = await openTestRota({
    options: { scheduler: { workerCount: 2, maxInflight: 2, maxPerAgentInflight: 1 } },
  });
  const latch = new Latch();
  rota.agent("a", () => latch.opened);
  rota.agent("b", () => latch.opened);
  const submit = (agentId: string) => rota.tasks.submit({ agentId, payload: 1 });
  const [first, second, third, last] = [
    await submit("a"),
    await submit("b"),
    await submit("a"),
    await submit("a"),
  ];
  expect(codes(await rota.tasks.explain(first.taskId))).toEqual(["not_started"]);
  await rota.start();
  await until(async () => (await rota.tasks.get(second.taskId)).state === "running");
  expect(await rota.tasks.explain(last.taskId)).toMatchObject({
    taskId: last.taskId,
    state: "queued",
    since: last.createdAt,
    position: 2,
    ahead: [third.taskId],
    reasons: [
      {
        code: "node_full",
        message: 'all 2 slots of the lane "tasks" on this node are taken',
        lane: "tasks",
      },
      {
        code: "lane_full",
        message: 'all 2 slots of the lane "tasks" over all nodes are taken',
        lane: "tasks",
      },
      { code: "agent_full", message: 'agent "a" runs 1 task in the lane "tasks" and may run 1 there' },
      { code: "tasks_ahead", message: '1 task of agent "a" goes first', taskId: third.taskId },
    ],
  });
  expect(await rota.tasks.explain(first.taskId)).toMatchObject({
    state: "running",
    position: 0,
    reasons: [{ code: "running", message: expect.stringContaining("attempt 1 runs on") }],
  });
  latch.open();
  await rota.tasks.wait(first.taskId);
  expect(await rota.tasks.explain(first.taskId)).toMatchObject({ state: "done", reasons: [] });
});

test("a task of a lane without slots is explained by the missing slots", async () => {
  const { rota } = await openTestRota({ options: { lanes: { main: 0 } } });
  await rota.start();
  const { taskId } = await rota.tasks.submit({ message: "hello" });
  expect((await rota.tasks.explain(taskId)).reasons).toMatchObject([
    {
      code: "lane_not_served",
      message: 'the lane "main" has a concurrency of 0 in this process',
      lane: "main",
    },
  ]);
});

test("a task that waits is explained by what it waits for, and until when", async () => {
  const { rota, clock } = await openTestRota();
  rota.agent("flaky", () => {
    throw new Error("no");
  });
  await rota.start();
  const runAt = new Date(clock.now() + 60_000).toISOString();
  const later = await rota.tasks.submit({ payload: 1, runAt });
  expect((await rota.tasks.explain(later.taskId)).reasons).toMatchObject([
    { code: "not_before", until: runAt, since: later.createdAt },
  ]);
  const waits = await rota.tasks.submit({ payload: 2, dependsOn: [later.taskId, "tsk_unknown"] });
  expect(await rota.tasks.explain(waits.taskId)).toMatchObject({
    state: "waiting_dependency",
    position: 0,
    ahead: [],
    reasons: [
      {
        code: "waiting_for_task",
        taskId: later.taskId,
        message: `it waits for ${later.taskId}, which is delayed`,
      },
      { code: "unknown_task", taskId: "tsk_unknown" },
    ],
  });
  const { taskId } = await rota.tasks.submit({
    agentId: "flaky",
    payload: 3,
    retryPolicy: { maxRetries: 1 },
  });
  await until(async () => (await rota.tasks.get(taskId)).state === "delayed");
  expect((await rota.tasks.explain(taskId)).reasons).toMatchObject([{ code: "retry_wait" }]);
});

test("a task whose concurrency key another has is explained by that task", async () => {
  const { rota } = await openTestRota();
  const latch = new Latch();
  rota.agent("a", () => latch.opened);
  await rota.start();
  const click = { agentId: "a", action: "click", tabId: "8f9c7d4e" };
  const first = await rota.tasks.submit(click);
  const second = await rota.tasks.submit(click);
  const deploy = { agentId: "a", payload: 1, concurrencyKey: 'the "site"' };
  const third = await rota.tasks.submit(deploy);
  const fourth = await rota.tasks.submit(deploy);
  expect([second.position, fourth.position].every((position) => position > 0)).toBe(true);
  await until(async () => (await rota.tasks.get(third.taskId)).state === "running");
  const fifth = await rota.tasks.submit(click);
  expect(await rota.tasks.explain(fifth.taskId)).toMatchObject({ position: 2, ahead: [second.taskId] });
  expect(await rota.tasks.explain(second.taskId)).toMatchObject({
    state: "queued",
    position: 1,
    ahead: [],
    reasons: [
      { code: "concurrency_key", message: `tab 8f9c7d4e busy with ${first.taskId}`, taskId: first.taskId },
    ],
  });
  expect((await rota.tasks.explain(fourth.taskId)).reasons).toMatchObject([
    {
      code: "concurrency_key",
      message: `concurrency key "the \\"site\\"" busy with ${third.taskId}`,
      taskId: third.taskId,
    },
  ]);
  latch.open();
  expect((await rota.tasks.wait(fourth.taskId)).state).toBe("done");
  expect((await rota.tasks.wait(second.taskId)).state).toBe("done");
});

test("a process that starts nothing says so", async () => {
  const { rota } = await openTestRota({ options: { scheduler: { enabled: false } } });
  await expect(rota.tasks.explain("tsk_nobody")).rejects.toMatchObject({ code: "not_found" });
});

test("a task that waits because running tasks hold too much memory is explained by that", async () => {
  const { rota } = await openTestRota({ options: { scheduler: { maxRunningBytes: 100_000 } } });
  const latch = new Latch();
  rota.agent("a", () => latch.opened);
  await rota.start();
  const submit = () => rota.tasks.submit({ agentId: "a", payload: "x".repeat(110_000) });
  const [first, second] = [await submit(), await submit()];
  await until(async () => (await rota.tasks.get(first.taskId)).state === "running");
  expect((await rota.tasks.explain(second.taskId)).reasons).toMatchObject([
    { code: "node_memory", message: expect.stringContaining("hold 0.1 MiB") },
  ]);
  latch.open();
  expect((await rota.tasks.wait(second.taskId)).state).toBe("done");
});

test("explains a task whose tenant holds its share of memory, while tasks of another tenant start", async () => {
  const { rota } = await openTestRota({ options: { scheduler: { maxRunningBytes: 1_000_000 } } });
  const latch = new Latch();
  rota.agent("a", () => latch.opened);
  await rota.start();
  const { id, tenant } = await createTenant(rota);
  const work = { agentId: "a", payload: "x".repeat(450_000) };
  const submitted = await Promise.all([1, 2, 3].map(() => rota.tasks.submit(work)));
  const [first, second, third] = submitted.map(({ taskId }) => taskId) as [string, string, string];
  await until(async () => (await rota.tasks.get(second)).state === "running");
  const { taskId } = await tenant.tasks.submit(work);
  await until(async () => (await tenant.tasks.get(taskId)).state === "running");
  expect((await rota.tasks.explain(third)).reasons).toMatchObject([
    {
      code: "node_memory",
      message: expect.stringMatching(/^the tasks of its tenant .* hold 0\.9 MiB: .* 0\.8 MiB of 1\.0 MiB/),
    },
    {
      code: "node_memory",
      message: expect.stringContaining("the tasks that run in this process hold 1.3 MiB"),
    },
  ]);
  await rota.tenants.disable(id);
  latch.open();
  for (const task of [first, second, third]) expect((await rota.tasks.wait(task)).state).toBe("done");
  expect((await tenant.tasks.wait(taskId)).state).toBe("done");
});

test("the bound on memory is all of one enabled tenant's", async () => {
  const { rota } = await openTestRota({ options: { scheduler: { maxRunningBytes: 1_000_000 } } });
  const latch = new Latch();
  rota.agent("a", () => latch.opened);
  await rota.start();
  const { id } = await createTenant(rota);
  await rota.tenants.disable(id);
  const submit = () => rota.tasks.submit({ agentId: "a", payload: "x".repeat(300_000) });
  const [, , , fourth] = [await submit(), await submit(), await submit(), await submit()];
  await until(async () => (await rota.tasks.get(fourth.taskId)).state === "running");
  latch.open();
  expect((await rota.tasks.wait(fourth.taskId)).state).toBe("done");
});
