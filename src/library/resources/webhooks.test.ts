import { createHmac } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { expect, test } from "vitest";
import { serve } from "../../../test/support/http-server.ts";
import { openTestRota, type TestRotaParams } from "../../../test/support/rota.ts";
import type { Delivery } from "../../model/delivery.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { Latch, until } from "../../testing/signals.ts";

const SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/** A Rota that runs, with a receiver on this machine that responds with each status in turn, then always with the last. */
async function open(params: TestRotaParams & { statuses?: number[] } = {}) {
  const { statuses = [204], options, ...rest } = params;
  const received: { body: Record<string, unknown>; headers: Record<string, unknown> }[] = [];
  const url = await serve((request, response, body) => {
    received.push({ body: JSON.parse(body), headers: request.headers });
    response.writeHead(statuses[Math.min(received.length, statuses.length) - 1] ?? 204).end();
  });
  const parts = await openTestRota({ ...rest, options: { webhooks: { allow: ["127.0.0.1"] }, ...options } });
  const { rota } = parts;
  const untilStatus = async (status: string): Promise<Delivery> => {
    let found: readonly Delivery[] = [];
    await until(async () => {
      found = (await rota.webhooks.deliveries()).deliveries;
      return found[0]?.status === status;
    }, `the newest delivery to be ${status}`);
    return found[0] as Delivery;
  };
  return { ...parts, url, received, untilStatus };
}

async function errorOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => null,
    (error) => ({ code: error.code, message: error.message }),
  );
}

const NOT_FOUND = { code: "not_found", message: "delivery not found" };

test("sends a callback with how the task ended, whatever ended it", async () => {
  const { rota, received, url, clock } = await open({ options: { lanes: { closed: 0 } } });
  const running = new Latch();
  rota.agent("worker", async ({ payload }, { signal }) => {
    if (payload === "throw") throw new Error("broke");
    if (payload !== "hang") return { echoed: payload };
    running.open();
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  });
  await rota.start();
  const submit = (payload: string, more = {}) =>
    rota.tasks.submit({ agentId: "worker", payload, callbackUrl: `${url}/${payload}`, ...more });
  await submit("work");
  await submit("throw");
  const { taskId: hanging } = await submit("hang");
  const { taskId: waiting } = await submit("wait", { runAt: "2100-01-01T00:00:00Z" });
  await submit("expire", { lane: "closed", deadline: new Date(clock.now() + 1_000).toISOString() });
  await running.opened;
  await rota.tasks.cancel(hanging);
  await rota.tasks.cancel(waiting);
  await clock.advance(1_100);
  await until(async () => {
    // One receiver gets four at a time: the fifth is sent a moment later.
    await clock.advance(10);
    return received.length === 5;
  }, "all five callbacks");
  const bodies = received.map(({ body }) => [
    body["payload"],
    body["state"],
    body["error"] ?? body["result"],
  ]);
  expect(bodies.sort()).toEqual([
    ["expire", "failed", "deadline exceeded while queued"],
    ["hang", "cancelled", undefined],
    ["throw", "failed", "broke"],
    ["wait", "cancelled", undefined],
    ["work", "done", { echoed: "work" }],
  ]);
});

test("a batch reports once that all have ended, and how, whatever is retried later", async () => {
  const clock = new ManualClock(Date.now());
  const { rota, received, url, untilStatus } = await open({
    clock,
    options: { webhooks: { allow: ["127.0.0.1"], secret: SECRET } },
  });
  rota.agent("worker", async ({ payload }) => {
    if (payload === "bad") throw new Error("broke");
  });
  await rota.start();
  const { batchId, taskIds, createdAt } = await rota.tasks.submitBatch({
    agentId: "worker",
    parallelism: 1,
    batchCallbackUrl: `${url}/batch`,
    tasks: [{ payload: "good" }, { payload: "bad" }, { payload: "good" }],
  });
  const delivery = await untilStatus("delivered");
  expect(delivery).toEqual({
    deliveryId: expect.stringMatching(/^whd_\w+_\d+$/),
    event: "batch.completed",
    batchId,
    taskId: taskIds[2],
    url: `${url}/batch`,
    status: "delivered",
    tries: 1,
    createdAt,
    lastTryAt: createdAt,
    responseStatus: 204,
  });
  const expected = {
    tenantId: "default",
    type: "batch.completed",
    batchId,
    parallelism: 1,
    counts: { done: 2, failed: 1 },
    createdAt,
    completedAt: createdAt,
  };
  const [first] = received;
  expect(first?.body).toEqual(expected);
  expect(first?.headers).toMatchObject({
    "x-pinchtab-event": "batch.completed",
    "webhook-id": delivery.deliveryId,
  });
  expect(first?.headers).not.toHaveProperty("x-pinchtab-task-id");
  const verified = new Webhook(SECRET).verify(
    JSON.stringify(first?.body),
    first?.headers as Record<string, string>,
  );
  expect(verified).toEqual(expected);

  await rota.tasks.retry(taskIds[1] as string);
  await rota.tasks.wait(taskIds[1] as string);
  await clock.advance(60_000);
  expect((await rota.webhooks.deliveries()).count).toBe(1);
  await rota.webhooks.resend(delivery.deliveryId);
  await until(() => received.length === 2, "the callback once more");
  expect(received[1]?.body).toEqual(expected);
});

test("a batch has its own callback beside those of its tasks, and also when none of them found room", async () => {
  const { rota, received, url, clock } = await open({ options: { scheduler: { maxPerAgent: 1 } } });
  await rota.start();
  await rota.tasks.submit({ agentId: "full", payload: 0, runAt: "2100-01-01T00:00:00Z" });
  await rota.tasks.submitBatch({
    agentId: "full",
    callbackUrl: `${url}/each`,
    batchCallbackUrl: `${url}/all`,
    tasks: [{ payload: 1 }, { payload: 2 }],
  });
  await until(() => received.length === 1, "the callback of the batch");
  expect(received[0]?.body["counts"]).toEqual({ rejected: 2 });
  const { taskIds } = await rota.tasks.submitBatch({
    callbackUrl: `${url}/each`,
    batchCallbackUrl: `${url}/all`,
    tasks: [{ payload: 1 }],
  });
  await until(async () => {
    await clock.advance(10);
    return received.length === 3;
  }, "both callbacks");
  const bodies = received.slice(1).map(({ body }) => body);
  expect(bodies.map(({ taskId, counts }) => [taskId, counts])).toEqual(
    expect.arrayContaining([
      [taskIds[0], undefined],
      [undefined, { done: 1 }],
    ]),
  );
});

test("a rejected task sends no callback", async () => {
  const { rota, url } = await open({ options: { scheduler: { maxQueueSize: 1 } } });
  const input = { payload: 1, callbackUrl: url };
  const answers = await rota.tasks.submitMany([input, input]);
  expect(answers.map(({ state }) => state)).toEqual(["queued", "rejected"]);
  expect((await rota.webhooks.deliveries()).count).toBe(0);
});

test("a callback to what must not be called is refused, and nothing is stored", async () => {
  const { rota, url } = await open();
  const bad = url.replace("127.0.0.1", "[::ffff:7f00:2]");
  const refused = await errorOf(rota.tasks.submit({ payload: 1, callbackUrl: `${bad}/?token=secret` }));
  expect(refused).toMatchObject({
    code: "invalid_field",
    message: expect.stringMatching(
      /^`callbackUrl` must not lead to .*, a loopback address: .*`outbound\.allow`/,
    ),
  });
  expect(JSON.stringify(refused)).not.toContain("token");
  const good = { payload: 1, callbackUrl: url };
  expect(
    await errorOf(rota.tasks.submitBatch({ tasks: [good, { ...good, callbackUrl: bad }] })),
  ).toMatchObject({
    message: expect.stringMatching(/^tasks\[1\]: `callbackUrl` must not lead to /),
  });
  expect(await errorOf(rota.tasks.submitBatch({ tasks: [good], batchCallbackUrl: bad }))).toMatchObject({
    message: expect.stringMatching(/^`batchCallbackUrl` must not lead to /),
  });
  expect(await errorOf(rota.sessions.send("user:42", { message: "hello", callbackUrl: bad }))).toMatchObject({
    message: expect.stringMatching(/^`callbackUrl` must not lead to /),
  });
  expect((await rota.tasks.counts()).total).toBe(0);
});

test("a delivery can be looked at, listed by task and status, and page by page", async () => {
  const { rota, url, untilStatus } = await open();
  await rota.start();
  const { taskId } = await rota.tasks.submit({ payload: 1, callbackUrl: `${url}/hook` });
  const delivery = await untilStatus("delivered");
  expect(delivery).toEqual({
    deliveryId: expect.stringMatching(new RegExp(`^whd_${taskId.slice(4)}_\\d+$`)),
    event: "task.completed",
    taskId,
    url: `${url}/hook`,
    state: "done",
    status: "delivered",
    tries: 1,
    createdAt: "2026-01-01T00:00:00.000Z",
    lastTryAt: "2026-01-01T00:00:00.000Z",
    responseStatus: 204,
  });
  expect(await rota.webhooks.get(delivery.deliveryId)).toEqual(delivery);
  await rota.tasks.submit({ payload: 2, callbackUrl: url });
  await until(async () => (await rota.webhooks.deliveries({ status: "delivered" })).count === 2);
  expect((await rota.webhooks.deliveries({ taskId })).deliveries).toEqual([delivery]);
  expect((await rota.webhooks.deliveries({ status: "failed" })).count).toBe(0);
  const first = await rota.webhooks.deliveries({ limit: 1 });
  expect(first).toMatchObject({ count: 1, nextCursor: expect.stringMatching(/^\d+$/) });
  const second = await rota.webhooks.deliveries({ limit: 1, cursor: first.nextCursor as string });
  expect(second).toEqual({ deliveries: [delivery], count: 1, nextCursor: null });
});

test("a delivery that is over is sent again on demand, under the same id, and one that is pending is not", async () => {
  const { rota, url, received, untilStatus } = await open({ statuses: [410, 500, 200] });
  await rota.start();
  await rota.tasks.submit({ payload: 1, callbackUrl: url });
  const { deliveryId } = await untilStatus("failed");
  expect(await rota.webhooks.resend(deliveryId)).toMatchObject({ deliveryId, status: "pending", tries: 0 });
  await until(async () => (await rota.webhooks.get(deliveryId)).responseStatus === 500, "the second try");
  expect(await errorOf(rota.webhooks.resend(deliveryId))).toEqual({
    code: "conflict",
    message: "the delivery is pending: it will be sent anyway",
  });
  expect(received.map(({ headers }) => headers["webhook-id"])).toEqual([deliveryId, deliveryId]);
});

test("what names no delivery is not found", async () => {
  const { rota, url, untilStatus } = await open();
  await rota.start();
  await rota.tasks.submit({ payload: 1, callbackUrl: url });
  const { deliveryId } = await untilStatus("delivered");
  const seq = deliveryId.split("_").at(-1);
  for (const id of ["", "x", "whd_x_1", `whd_other_${seq}`, `${deliveryId}0`, `whd_\0_${seq}`, 7 as never]) {
    expect(await errorOf(rota.webhooks.get(id)), String(id)).toEqual(NOT_FOUND);
    expect(await errorOf(rota.webhooks.resend(id)), String(id)).toEqual(NOT_FOUND);
  }
});

test.each([
  [{ status: "done" }, '`status` must be pending, delivered or failed, not "done"'],
  [{ limit: 0 }, "`limit` must be an integer from 1 to 1000, not 0"],
  [{ cursor: "x" }, "`cursor` must be the `nextCursor` of the page before"],
  [{ task: "x" }, /^unknown field `task`: did you mean `taskId`\?/],
  [{ taskId: "\0" }, "`taskId` must be the id of a task"],
])("the filter %j is refused", async (filter, sentence) => {
  const { rota } = await open();
  expect(await errorOf(rota.webhooks.deliveries(filter as never))).toEqual({
    code: "invalid_field",
    message: typeof sentence === "string" ? sentence : expect.stringMatching(sentence),
  });
});

test("pending callbacks are sent with the next start, even of a scheduler that is disabled", async () => {
  const first = await open();
  const { taskId } = await first.rota.tasks.submit({ payload: 1, callbackUrl: first.url });
  await first.rota.tasks.cancel(taskId);
  expect(first.received).toEqual([]);
  const second = await openTestRota({
    clock: first.clock,
    storage: first.storage,
    options: { scheduler: { enabled: false }, webhooks: { allow: ["127.0.0.1"] } },
  });
  await second.rota.start();
  await until(() => first.received.length === 1, "the callback");
});

test("a stop waits for the callbacks of what ended last", async () => {
  const { rota, url, received, clock } = await open();
  const running = new Latch();
  const finish = new Latch();
  rota.agent("worker", async () => {
    running.open();
    await finish.opened;
  });
  await rota.start();
  await rota.tasks.submit({ agentId: "worker", payload: 1, callbackUrl: url });
  await running.opened;
  const drained = rota.drain({ graceMs: 10_000 });
  finish.open();
  await drained;
  expect(received.map(({ body }) => body["state"])).toEqual(["done"]);
  expect(clock.now()).toBe(Date.UTC(2026, 0, 1));
});

test("a reload changes what may be called and how it is signed", async () => {
  const { rota, url, received } = await open({ options: { webhooks: { allow: [] } } });
  await rota.start();
  const input = { payload: 1, callbackUrl: url };
  expect(await errorOf(rota.tasks.submit(input))).toMatchObject({ code: "invalid_field" });
  const reloaded = await rota.reload({ webhooks: { allow: ["127.0.0.0/8"], secret: SECRET } });
  expect(reloaded.changed).toEqual(["webhooks.allow", "webhooks.secret"]);
  await rota.tasks.submit(input);
  await until(() => received.length === 1, "the callback");
  expect(received[0]?.headers).toHaveProperty("webhook-signature");
});

test("a faulty secret is refused without being shown, and a right one shows nowhere", async () => {
  const faulty = await errorOf(open({ options: { webhooks: { secret: "whsec_not-base64" } } }));
  expect(faulty).toMatchObject({
    code: "invalid_field",
    message: expect.stringMatching(/`webhooks\.secret` must be "whsec_" and the key in base64/),
  });
  expect(JSON.stringify(faulty)).not.toContain("not-base64");

  const { rota, url, log, untilStatus } = await open({
    statuses: [410],
    options: { webhooks: { allow: ["127.0.0.1"], secret: SECRET } },
  });
  await rota.start();
  await rota.tasks.submit({ payload: 1, callbackUrl: url });
  const delivery = await untilStatus("failed");
  const shown = [delivery, log.lines, await rota.stats(), await rota.metrics(), await rota.health()];
  expect(JSON.stringify(shown)).not.toMatch(/MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw/);
  expect(await rota.metrics()).toContain('rota_webhook_deliveries_total{outcome="failed"} 1');
});

test.each([
  ["hang", 400],
  ["fail at once", 1_000],
])("callbacks of one tenant whose receivers %s delay those of no other", async (what, times) => {
  const ports = await Promise.all(
    Array.from({ length: 4 }, () =>
      serve((_request, response) => {
        if (what !== "hang") response.writeHead(500).end();
      }),
    ),
  );
  const { rota, url, received } = await open({ options: { scheduler: { maxQueueSize: 10_000 } } });
  await rota.start();
  const [hostile, victim] = await Promise.all(
    ["hostile", "victim"].map(async (name) => rota.tenant((await rota.tenants.create({ name })).id)),
  );
  if (!hostile || !victim) throw new Error("There are two.");
  for (let from = 0; from < times; from += 100) {
    const tasks = Array.from({ length: 100 }, (_, n) => ({
      payload: n,
      callbackUrl: `${ports[n % ports.length]}/${n}`,
    }));
    await hostile.tasks.submitMany(tasks);
  }
  await until(async () => (await hostile.tasks.counts()).counts.done === times, "the hostile tasks to end");
  // The clock stands still: whatever has to wait for time would never come.
  const { webhooks, tasks } = victim;
  for (let count = 1; count <= 5; count += 1) {
    await tasks.submit({ payload: count, callbackUrl: url });
    await until(() => received.length === count, "the callback of the victim");
  }
  await until(async () => (await webhooks.deliveries({ status: "pending" })).count === 0, "all to be noted");
  if (what !== "hang") return;
  const { deliveries } = await hostile.webhooks.deliveries({ status: "pending", limit: 1_000 });
  const waits = Map.groupBy(deliveries, ({ waitsFor }) => waitsFor);
  expect([waits.get("host")?.length, waits.get(undefined)?.length]).toEqual([times - 1, 1]);
  expect(await rota.metrics()).toContain('rota_webhook_inflight_deliveries{host="unproven"} 1');
});

// ------------------------------------------------------------------------------------------------------- whose secret

const DAY_MS = 24 * 3_600_000;

/** A Rota with a configured secret and a second tenant, and a receiver that checks which secret signed a callback. */
async function openSigned({ environment = {} }: Pick<TestRotaParams, "environment"> = {}) {
  const clock = new ManualClock(Date.now());
  const webhooks = { allow: ["127.0.0.1"], secret: SECRET };
  const parts = await open({ clock, environment, options: { webhooks } });
  const { rota, url, received } = parts;
  await rota.start();
  const { id: acme } = await rota.tenants.create({ name: "Acme" });

  /** Which of these secrets have signed the callback of a task that ends now. */
  async function signers(tenant: string, secrets: Readonly<Record<string, string>>): Promise<string[]> {
    const before = received.length;
    await rota.tenant(tenant).tasks.submit({ message: "hello", callbackUrl: url });
    await until(() => received.length > before, "a callback");
    const { body, headers } = received.at(-1) ?? { body: {}, headers: {} };
    expect(body).toMatchObject({ tenantId: tenant });
    const given = String(headers["webhook-signature"] ?? "")
      .split(" ")
      .filter((text) => text !== "");
    const content = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${JSON.stringify(body)}`;
    const names = given.map((signature) =>
      Object.keys(secrets).find((name) => {
        const key = Buffer.from((secrets[name] ?? "").replace("whsec_", ""), "base64");
        return signature === `v1,${createHmac("sha256", key).update(content).digest("base64")}`;
      }),
    );
    return names.map((name) => name ?? "unknown");
  }
  return { ...parts, clock, acme, signers };
}

test("the configured secret signs for the default tenant alone, and for it 24 hours beside its own", async () => {
  const { rota, acme, signers, clock } = await openSigned();
  const configured = SECRET;
  expect(await signers("default", { configured })).toEqual(["configured"]);
  expect(await signers(acme, { configured })).toEqual([]);
  const { secret: own, previousUntil } = await rota.tenants.rotateWebhookSecret("default");
  expect(own).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
  expect(previousUntil).toBe(new Date(clock.now() + DAY_MS).toISOString());
  expect(await signers("default", { own, configured })).toEqual(["own", "configured"]);
  expect(await signers(acme, { own, configured })).toEqual([]);
  clock.set(clock.now() + DAY_MS);
  expect(await signers("default", { own, configured })).toEqual(["own"]);
});

test("a tenant's secret is encrypted in the storage where there is a key, and signs all the same", async () => {
  const environment = { ROTA_SECRET_KEY: Buffer.alloc(32, 1).toString("base64") };
  const { rota, acme, signers, storage } = await openSigned({ environment });
  const { secret: own } = await rota.tenants.rotateWebhookSecret(acme);
  expect(await signers(acme, { own })).toEqual(["own"]);
  const stored = (await storage.tenants.webhookSecrets()).map(({ secret }) => secret);
  expect(stored).toEqual([expect.stringMatching(/^sealed:1:/)]);
});

test("a tenant's secret is made at its first rotation; two sign at most, the older for 24 hours", async () => {
  const { rota, acme, signers, clock } = await openSigned();
  const rotate = () => rota.tenants.rotateWebhookSecret(acme);
  const { secret: first, previousUntil } = await rotate();
  expect(previousUntil).toBeNull();
  const { secret: second } = await rotate();
  expect(await signers(acme, { first, second, configured: SECRET })).toEqual(["second", "first"]);
  const { secret: third } = await rotate();
  const secrets = { first, second, third, configured: SECRET };
  expect(await signers(acme, secrets)).toEqual(["third", "second"]);
  clock.set(clock.now() + DAY_MS - 1_000);
  expect(await signers(acme, secrets)).toEqual(["third", "second"]);
  clock.set(clock.now() + 1_000);
  expect(await signers(acme, secrets)).toEqual(["third"]);
  expect(await signers("default", secrets)).toEqual(["configured"]);
});

test("without a configured secret no previous one signs after the first rotation", async () => {
  const { rota } = await open();
  expect(await rota.tenants.rotateWebhookSecret("default")).toMatchObject({ previousUntil: null });
});
