import { setTimeout as delay } from "node:timers/promises";
import { Webhook } from "standardwebhooks";
import { afterAll, expect, onTestFinished, test } from "vitest";
import { createRota, type Rota, type RotaOptions } from "../src/index.ts";
import { openPostgres } from "../src/storage/postgres/connection/open.ts";
import { until } from "../src/testing/index.ts";
import { prepareDatabaseCopies } from "./postgres/database-copies.ts";
import { serve } from "./support/http-server.ts";

const copies = await prepareDatabaseCopies(async (url) => (await openPostgres({ url })).close());
afterAll(() => copies.drop());

/** Two nodes on one PostgreSQL, with the time of the real world: one that is asked, and one that does the work. */
async function openNodes(options: RotaOptions = {}): Promise<{ asked: Rota; working: Rota }> {
  const { url } = await copies.copy();
  const open = async () => {
    const rota = await createRota({ ...options, storage: url });
    onTestFinished(() => rota.stop({ graceMs: 0 }));
    return rota;
  };
  const nodes = { asked: await open(), working: await open() };
  await nodes.working.start();
  return nodes;
}

const HOUR_SEC = 3_600;
const everySecond = { kind: "every", everyMs: 1_000 } as const;

test("schedules stand still on every node while their tenant is disabled, and go on when it is enabled", async () => {
  const { asked } = await openNodes();
  const { id } = await asked.tenants.create({ name: "Acme" });
  const { schedules } = asked.tenant(id);
  const { id: recurring } = (await schedules.create({ schedule: everySecond, message: "x" })).scheduled_task;
  const rows = async (status: string) =>
    (await schedules.runs(recurring)).runs.filter((run) => run.status === status);
  await until(async () => (await rows("succeeded")).length > 0, "the first run");
  await asked.tenants.disable(id);
  // Far enough for a busy machine to store it before: what is past is refused.
  const atMs = Date.now() + 1_500;
  const { id: once } = (await schedules.create({ schedule: { kind: "at", atMs }, message: "x" }))
    .scheduled_task;
  await until(async () => (await schedules.get(once)).status === "paused", "what is due once to be paused");
  await until(async () => (await rows("skipped")).length > 0, "a moment to be skipped");
  const [skipped] = await rows("skipped");
  expect(skipped).toMatchObject({ reason: "tenant disabled" });
  expect((await schedules.get(recurring)).next_fire_at).toBe((skipped?.due_at ?? 0) + HOUR_SEC);
  const before = (await rows("succeeded")).length;
  await asked.tenants.enable(id);
  await until(async () => (await schedules.get(once)).status === "completed", "the run of what is due once");
  await until(async () => (await rows("succeeded")).length > before, "the next run");
  // Every moment has its row, and one only.
  const { runs } = await schedules.runs(recurring);
  const moments = runs.reduce((sum, run) => sum + run.moments, 0);
  expect(moments).toBe((runs[0]?.due_at ?? 0) - (runs.at(-1)?.due_at ?? 0) + 1);
});

test("what runs on another node is stopped when its tenant is deleted, and nothing is left", async () => {
  const { asked, working } = await openNodes();
  const { id } = await asked.tenants.create({ name: "Acme" });
  const tenant = asked.tenant(id);
  const stopped: string[] = [];
  let running = 0;
  working.agent("slow", async ({ taskId }, { signal }) => {
    running += 1;
    await new Promise((resolve) => signal.addEventListener("abort", resolve));
    stopped.push(taskId);
  });
  const { taskId } = await tenant.tasks.submit({ agentId: "slow", payload: 1 });
  const kept = await asked.tasks.submit({ agentId: "slow", payload: 1 });
  await tenant.schedules.create({ schedule: everySecond, message: "x" });
  await until(() => running === 2, "both to run");
  await asked.tenants.delete(id);
  await until(() => stopped.length > 0, "the task to be stopped");
  expect(stopped).toEqual([taskId]);
  expect(await tenant.tasks.counts()).toEqual({ counts: {}, total: 0 });
  expect((await tenant.schedules.list()).count).toBe(0);
  expect((await asked.tasks.get(kept.taskId)).state).toBe("running");
  await until(async () => {
    const refused = await working
      .tenant(id)
      .tasks.submit({ payload: 1 })
      .then(
        () => null,
        ({ code }) => code,
      );
    return refused === "not_found";
  }, "the other node to know that it is gone");
});

test("a tenant whose tasks hang leaves slots on every node for one that had no work", async () => {
  const scheduler = { workerCount: 3, maxInflight: 10, maxPerAgentInflight: 100 };
  const { asked, working } = await openNodes({ scheduler });
  await asked.start();
  const running: string[] = [];
  for (const rota of [asked, working]) {
    rota.agent("hangs", async ({ taskId }, { signal }) => {
      running.push(taskId);
      await new Promise((resolve) => signal.addEventListener("abort", resolve));
    });
  }
  const hang = async (tenant: Pick<Rota, "tasks">, count: number) => {
    const submitted = Array.from({ length: count }, () =>
      tenant.tasks.submit({ agentId: "hangs", payload: 1 }),
    );
    return (await Promise.all(submitted)).map(({ taskId }) => taskId);
  };
  const [busy, quiet] = await Promise.all(
    ["Busy", "Quiet"].map(async (name) => asked.tenant((await asked.tenants.create({ name })).id)),
  );
  if (busy === undefined || quiet === undefined) throw new Error("two tenants were created");
  const waiting = await hang(busy, 12);
  // Two of the three slots of each of two nodes.
  await until(() => running.length === 4, "its share to run");
  const late = await hang(quiet, 3);
  await until(() => running.length === 6, "the slots that are left to be taken");
  expect(running.filter((taskId) => late.includes(taskId))).toHaveLength(2);
  const last = waiting.find((taskId) => !running.includes(taskId)) ?? "";
  const codes = async () => (await busy.tasks.explain(last)).reasons.map(({ code }) => code);
  expect(await codes()).not.toContain("tenant_at_lane_share");
  // The one that waits goes first, so that it does not take the slot of the other.
  for (const isRunning of [false, true])
    await quiet.tasks.cancel(late.find((taskId) => running.includes(taskId) === isRunning) ?? "");
  await until(async () => (await codes()).includes("tenant_at_lane_share"), "the reason to be its share");
  expect(running).toHaveLength(6);
});

test("a new webhook secret signs on every node within a second", async () => {
  const received: { body: string; headers: Record<string, string> }[] = [];
  const url = await serve((request, response, body) => {
    received.push({ body, headers: request.headers as Record<string, string> });
    response.end();
  });
  const { asked } = await openNodes({ webhooks: { allow: ["127.0.0.1"] } });
  const { id } = await asked.tenants.create({ name: "Acme" });
  const { secret } = await asked.tenants.rotateWebhookSecret(id);
  await delay(1_000);
  // Only the other node has been started.
  await asked.tenant(id).tasks.submit({ message: "hello", callbackUrl: url });
  await until(() => received.length > 0, "a callback");
  const { body, headers } = received[0] ?? { body: "", headers: {} };
  expect(new Webhook(secret).verify(body, headers)).toMatchObject({ tenantId: id });
});
