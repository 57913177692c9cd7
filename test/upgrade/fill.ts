import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Rota } from "../../src/interface/rota.ts";
import type { DeliveryStatus } from "../../src/model/delivery.ts";
import { rfc3339 } from "../../src/model/text/rfc3339.ts";
import { createRota } from "../../src/rota.ts";
import { Latch } from "../../src/testing/index.ts";
import { OPTIONS, RECEIVER_URL, SOON_MS } from "./fixture.ts";

export interface Filled {
  readonly rota: Rota;
  /** API keys as they were shown, by role. */
  readonly keys: Readonly<Record<string, string>>;
}

/** Puts something of everything into an empty storage, and leaves it in the middle of its work. */
export async function fill(storage: string): Promise<Filled> {
  const rota = await createRota({ ...OPTIONS, storage });
  const hanging = new Latch();
  rota.agent("worker", async (task, { usage, log }) => {
    log.info({}, "begins");
    const { does } = (task.metadata ?? {}) as { does?: string };
    if (does === "hang" || task.message === "hang") await hanging.opened;
    usage({ inputTokens: 1_200, outputTokens: 34, contextWindow: 8_000 });
    if (does === "fail") throw new Error("it went wrong");
    return { did: task.instruction ?? task.message ?? task.payload };
  });
  await rota.start();

  // An agent that was there, and an executor for a kind.
  await rota.reload({ agents: { left: { executor: { type: "echo" } } } });
  await until(() => isServed(rota, "left"), "an agent that is there for a while");
  await rota.reload({ agents: {}, executors: { message: { type: "echo" } } });

  await rota.agents.create({ id: "stored", executor: { type: "echo" }, lane: "team", maxInflight: 2 });
  await rota.lanes.put("night", { concurrency: 2, total: 5 });
  const keys = await fillTenants(rota);
  await fillSchedules(rota);
  await fillEnded(rota);
  await fillSessions(rota);
  await fillWaiting(rota);
  await fillCallbacks(rota);
  await rota.bulks.start({ action: "delete", filter: { agentId: "nobody" } });
  await fillWorkers(rota);
  await fillTree(rota);
  return { rota, keys };
}

/** A worker that has ended a task and drains, and the memory of one that was removed. */
async function fillWorkers(rota: Rota): Promise<void> {
  await rota.agents.create({ id: "remote", executor: { type: "worker" } });
  const caller = { keyId: null, agents: null };
  const { workerId } = await rota.workers.register(
    { name: "elsewhere", agents: ["remote"], slots: 3 },
    caller,
  );
  await rota.tasks.submit({ agentId: "remote", payload: "elsewhere", lane: "night" });
  const claim = { claimId: randomUUID(), max: 1, waitS: 10 };
  const gone = new AbortController().signal;
  const { answer } = await rota.workers.claim(workerId, claim, { ...caller, gone });
  const attempts = answer.attempts.map(
    ({ attemptToken }) => ({ attemptToken, outcome: "done", result: 1 }) as const,
  );
  if (attempts.length === 0) throw new Error("The worker got no task.");
  await rota.workers.finish(workerId, { attempts }, caller);
  await rota.workers.drain(workerId);
  await rota.agents.create({ id: "far", executor: { type: "worker" } });
  const removed = await rota.workers.register({ name: "gone", agents: ["far"], slots: 1 }, caller);
  await rota.workers.delete(removed.workerId);
}

/** Tasks within a task, of a caller with bounds, and a schedule of the same caller. */
async function fillTree(rota: Rota): Promise<void> {
  const { taskId } = await rota.tasks.submit({ agentId: "stored", payload: "root" });
  const provenance = {
    createdBy: { keyId: null, agentId: "stored", via: "library" },
    within: { taskId, rootTaskId: taskId, depth: 0 },
  } as const;
  const bounded = rota.tenant("default", {
    provenance,
    bounds: { maxOpenTasks: 10, maxSubmitsPerHour: 10, maxDescendants: 10, maxActiveSchedules: 10 },
  });
  await bounded.tasks.submit({ agentId: "stored", payload: "below" });
  await bounded.tasks.submit({ agentId: "stored", payload: "later", runAt: soon() });
  await bounded.schedules.create({ schedule: "every hour", message: "the rounds", agent: "stored" });
}

async function isServed(rota: Rota, agentId: string): Promise<boolean> {
  const { taskId } = await rota.tasks.submit({ agentId, payload: 1 });
  return (await rota.tasks.wait(taskId)).state === "done";
}

/** Two tenants besides the first, one of them disabled, with work of their own; a key for each role; what was done. */
async function fillTenants(rota: Rota): Promise<Record<string, string>> {
  const acme = await rota.tenants.create({ name: "Acme", limits: { maxQueued: 50, maxInflight: 2 } });
  const still = await rota.tenants.create({ name: "Still" });
  for (const { id } of [acme, still]) {
    const theirs = rota.tenant(id);
    await theirs.tasks.wait((await theirs.tasks.submit({ message: "theirs" })).taskId);
    await theirs.schedules.create({ schedule: "every day at 09:00", message: "theirs", tz: "Asia/Tokyo" });
    await theirs.tasks.submit({ payload: "later", runAt: soon() });
  }
  await rota.tenants.disable(still.id);
  for (const id of [acme.id, acme.id, "default"]) await rota.tenants.rotateWebhookSecret(id);
  const keys: Record<string, string> = {};
  for (const role of ["admin", "tenant-admin", "operator", "viewer"] as const)
    keys[role] = (await rota.keys.create({ role, name: `a key for the ${role}` })).key;
  keys["agent"] = (
    await rota.keys.create({ role: "agent", name: "acme's", agentId: "index", tenantId: acme.id })
  ).key;
  await rota.audit.write({ route: "POST /v1/tenants", subject: acme.id });
  await rota.audit.write({ tenantId: acme.id, route: "POST /v1/keys", keyId: null });
  return keys;
}

/** Schedules of all kinds; runs that went well, badly, are under way and were skipped. */
async function fillSchedules(rota: Rota): Promise<void> {
  const { schedules } = rota;
  const make = async (input: Partial<Parameters<typeof schedules.create>[0]>) => {
    const base = { schedule: "every 10 minutes", message: "the rounds", agent: "worker" };
    return (await schedules.create({ ...base, ...input })).scheduled_task.id;
  };
  const status = async (id: number) => (await schedules.runs(id)).runs[0]?.status;
  const rounds = await make({ name: "rounds", retry: { max_retries: 2, base_delay_ms: 500 } });
  await schedules.run(rounds);
  await until(async () => (await status(rounds)) === "succeeded", "a run that went well");
  await make({ schedule: "0 9 * * 1-5", tz: "Europe/Berlin", conversation_id: "conv-1", catch_up: "all" });
  await make({ schedule: "in 5 minutes", name: "once", useful_for: 86_400 });
  await schedules.create({
    schedule: "every day at 07:00",
    name: "bounded",
    agent: "worker",
    payload: { n: 1 },
    lane: "team",
    priority: "high",
    metadata: { kept: true },
    callback_url: RECEIVER_URL,
    max_runs: 30,
    until: "2090-01-01T00:00:00Z",
    pause_after_failures: 3,
  });
  const gone = await make({ schedule: { kind: "at", atMs: Date.now() + 1_000 }, name: "gone" });
  await until(async () => (await schedules.get(gone)).status === "completed", "one that was due once");
  const missing = await make({ agent: "stored", schedule: "every hour", name: "paused" });
  await schedules.update(missing, { status: "paused" });
  // Its first run does not end, so that the moments after it are skipped.
  const held = await make({ schedule: { kind: "every", everyMs: 1_000 }, message: "hang", name: "held" });
  await until(async () => (await status(held)) === "skipped", "a moment that was skipped");
  await schedules.update(held, { schedule: "every 10 minutes" });
}

/** Tasks in every state that is an end, with attempts, callbacks and a batch that is over. */
async function fillEnded(rota: Rota): Promise<void> {
  const { tasks } = rota;
  const submit = async (input: Parameters<typeof tasks.submit>[0]) => (await tasks.submit(input)).taskId;
  const quick = { maxRetries: 2, backoffMs: 10, backoffMultiplier: 1 };
  const worker = { agentId: "worker" };
  await tasks.wait(
    await submit({ ...worker, instruction: "done", idempotencyKey: "once", callbackUrl: RECEIVER_URL }),
  );
  const fails = { metadata: { does: "fail" } };
  await tasks.wait(await submit({ ...worker, ...fails, instruction: "in vain", retryPolicy: quick }));
  const parent = await submit({ ...worker, payload: "parent", runAt: soon() });
  const child = await submit({ ...worker, payload: "child", dependsOn: [parent] });
  await tasks.cancel(parent);
  await tasks.wait(child);
  const { taskIds } = await tasks.submitBatch({
    agentId: "worker",
    batchCallbackUrl: RECEIVER_URL,
    tasks: [
      { key: "a", payload: 1 },
      { key: "b", payload: 2, dependsOn: ["a"] },
    ],
  });
  for (const id of taskIds) await tasks.wait(id);
  await tasks.wait(await submit({ agentId: "tab", action: "click" }));
}

/** A session with a message that runs, and one that was reset. */
async function fillSessions(rota: Rota): Promise<void> {
  const { sessions } = rota;
  await sessions.ask("user:1", { message: "hello", agentId: "worker" });
  await sessions.update("user:1", { maxConcurrent: 1, cap: 5, tokens: 4_000, contextWindow: 8_000 });
  await sessions.send("user:1", { message: "hang" });
  await sessions.send("user:1", { message: "are you there?" });
  await sessions.send("user:1", { message: "hello?" });
  await sessions.ask("user:2", { message: "hello", agentId: "worker" });
  await sessions.reset("user:2");
  await sessions.update("settings-only", { debounceMs: 900, mode: "interrupt" });
}

/** Tasks in every state that is no end; those that run are the tenant's share of the lane, so that the rest stays where it is. */
async function fillWaiting(rota: Rota): Promise<void> {
  const { tasks } = rota;
  const worker = { agentId: "worker", retryPolicy: { maxRetries: 0 } };
  const hang = { metadata: { does: "hang" } };
  await tasks.submit({
    ...worker,
    metadata: { does: "fail" },
    instruction: "waits for its retry",
    retryPolicy: { maxRetries: 3, backoffMs: SOON_MS, maxBackoffMs: SOON_MS },
  });
  await until(async () => (await tasks.counts()).counts.delayed !== undefined, "a retry");
  await tasks.submit({ ...worker, ...hang, payload: "lost", callbackUrl: RECEIVER_URL });
  await tasks.submit({ ...worker, ...hang, instruction: "tried again", retryPolicy: { maxRetries: 2 } });
  await tasks.submit({
    ...worker,
    ...hang,
    payload: "may give way",
    lane: "team",
    preemptible: true,
    priority: "low",
    retryPolicy: { maxRetries: 1 },
  });
  await until(async () => ((await tasks.counts()).counts.running ?? 0) >= 5, "what runs");
  const { taskId } = await tasks.submit({
    ...worker,
    payload: "queued",
    priority: "high",
    concurrencyKey: "shared",
    deadline: new Date(Date.now() + 86_400_000),
  });
  await tasks.submit({ ...worker, payload: "waits for another", dependsOn: [taskId] });
  await tasks.submit({ ...worker, message: "at its time", runAt: soon() });
  await tasks.submitBatch({
    agentId: "worker",
    parallelism: 1,
    tasks: [
      { key: "first", instruction: "first", concurrencyKey: "shared" },
      { key: "second", instruction: "second", dependsOn: ["first"] },
    ],
  });
  await tasks.submit({ ...worker, payload: "one too many" }).catch(() => {});
}

/** Callbacks that were taken, that were given up, and one that will be tried again half a minute later. */
async function fillCallbacks(rota: Rota): Promise<void> {
  const callback = async (callbackUrl: string, status: DeliveryStatus, tries: number) => {
    const { taskId } = await rota.tasks.submit({ message: "tell me", callbackUrl });
    await until(async () => {
      const [delivery] = (await rota.webhooks.deliveries({ taskId, status })).deliveries;
      return delivery?.tries === tries && (delivery.error !== undefined) === (status !== "delivered");
    }, `a callback that is ${status}`);
  };
  await whileReceiving((url) => callback(url, "delivered", 1));
  await callback(RECEIVER_URL, "failed", 4);
  await callback(RECEIVER_URL, "pending", 3);
}

function soon(): string {
  return rfc3339(Date.now() + SOON_MS);
}

const PATIENCE_MS = 90_000;

/** Asks now and then: here it is the world's own time that passes. */
async function until(condition: () => Promise<boolean>, what: string): Promise<void> {
  const giveUpAt = performance.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (performance.now() > giveUpAt) throw new Error(`waited in vain for ${what}`);
    await delay(50);
  }
}

/** Hands `use` a URL at which callbacks are taken. */
async function whileReceiving(use: (url: string) => Promise<void>): Promise<void> {
  const server = createServer((_, response) => response.end()).listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}/taken`);
  server.close();
  server.closeAllConnections();
}
