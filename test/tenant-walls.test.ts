import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { LocalTenant, Rota } from "../src/interface/rota.ts";
import type { RotaEvent } from "../src/model/event.ts";
import type { Notification } from "../src/model/notification.ts";
import type { ManualClock } from "../src/testing/manual-clock.ts";
import { settle } from "../src/testing/manual-clock.ts";
import { Held } from "./support/held.ts";
import { serve } from "./support/http-server.ts";
import { openTestRota } from "./support/rota.ts";

const HOUR = 60 * 60 * 1_000;
/** Part of every text that its owner chose: a caller of another tenant must never see it. */
const SECRET = "zebra";

/** What one tenant has, by the names that another could get hold of. */
interface Owned {
  readonly running: string;
  readonly waiting: string;
  readonly failed: string;
  readonly batch: string;
  readonly session: string;
  readonly schedule: number;
  readonly run: number;
  readonly agent: string;
  readonly delivery: string;
  readonly bulk: string;
  readonly idempotencyKey: string;
}

interface World {
  readonly rota: Rota;
  readonly clock: ManualClock;
  readonly held: Held;
  readonly acme: LocalTenant;
  readonly other: LocalTenant;
  readonly owned: Owned;
}

let world: World;

beforeEach(async () => {
  world = await openWorld();
});

async function openWorld(): Promise<World> {
  const callback = await serve((_request, response) => {
    response.statusCode = 410;
    response.end();
  });
  const { rota, clock } = await openTestRota({ options: { webhooks: { allow: ["127.0.0.1"] } } });
  const held = new Held();
  rota.agent("held", held.executor);
  rota.agent("failing", () => {
    throw new Error(SECRET);
  });
  await rota.start();
  const acme = rota.tenant((await rota.tenants.create({ name: "Acme" })).id);
  const other = rota.tenant((await rota.tenants.create({ name: "Other" })).id);
  const owned = await fill(acme, { clock, callbackUrl: callback });
  return { rota, clock, held, acme, other, owned };
}

/** One of everything that a tenant can own. */
async function fill(
  tenant: LocalTenant,
  { clock, callbackUrl }: { clock: ManualClock; callbackUrl: string },
): Promise<Owned> {
  const agent = `${SECRET}-writer`;
  const session = `${SECRET}-talk`;
  await tenant.agents.create({ id: agent, executor: { type: "echo" } });
  const idempotencyKey = `${SECRET}-once`;
  const running = await tenant.tasks.submit({ agentId: "held", payload: SECRET, idempotencyKey });
  const waiting = await tenant.tasks.submit({ agentId: agent, payload: SECRET, dependsOn: [running.taskId] });
  const failed = await tenant.tasks.submit({ agentId: "failing", payload: SECRET, callbackUrl });
  const batch = await tenant.tasks.submitBatch({ tasks: [{ agentId: agent, payload: SECRET }] });
  await tenant.sessions.send(session, { message: SECRET, agentId: "held" });
  const { scheduled_task } = await tenant.schedules.create({
    schedule: "every hour",
    message: SECRET,
    agent,
    tz: "UTC",
  });
  const [run] = await runsOf(tenant, scheduled_task.id);
  await settle();
  // What happened is counted.
  await clock.advance(5_000);
  // Callbacks are made over real sockets.
  const delivery = await firstDelivery(tenant);
  const { bulkId: bulk } = await tenant.bulks.start({ action: "delete", filter: { agentId: "nobody" } });
  return {
    running: running.taskId,
    waiting: waiting.taskId,
    failed: failed.taskId,
    batch: batch.batchId,
    session,
    schedule: scheduled_task.id,
    run: run?.id ?? 0,
    agent,
    delivery,
    bulk,
    idempotencyKey,
  };
}

async function runsOf(tenant: LocalTenant, schedule: number) {
  await tenant.schedules.run(schedule);
  return (await tenant.schedules.runs(schedule)).runs;
}

async function firstDelivery(tenant: LocalTenant): Promise<string> {
  const [delivery] = (await tenant.webhooks.deliveries()).deliveries;
  if (delivery === undefined) throw new Error("There is a callback.");
  return delivery.deliveryId;
}

/** Everything that a tenant sees, as it is. */
async function sightOf(tenant: LocalTenant, { schedule, session }: Owned) {
  return {
    tasks: await tenant.tasks.list(),
    counts: await tenant.tasks.counts(),
    sessions: await tenant.sessions.list(),
    session: await tenant.sessions.get(session),
    schedules: await tenant.schedules.list(),
    status: await tenant.schedules.status(),
    runs: await tenant.schedules.runs(schedule),
    agents: await tenant.agents.list(),
    deliveries: (await tenant.webhooks.deliveries()).deliveries.map(({ deliveryId }) => deliveryId),
    queue: (await tenant.stats()).queue,
  };
}

/** All events so far that this reader gets. */
async function happened<Item>(open: (signal: AbortSignal) => AsyncIterable<Item>): Promise<Item[]> {
  const controller = new AbortController();
  onTestFinished(() => controller.abort());
  const items: Item[] = [];
  const reading = (async () => {
    for await (const each of open(controller.signal)) items.push(each);
  })();
  await settle();
  controller.abort();
  await reading;
  return items;
}

function eventsOf(tenant: LocalTenant, filter = {}): Promise<RotaEvent[]> {
  return happened((signal) => tenant.events({ after: 0, signal, ...filter }));
}

function notificationsOf(tenant: LocalTenant): Promise<Notification[]> {
  return happened((signal) => tenant.notifications({ after: 0, signal }));
}

type Call = (tenant: LocalTenant, owned: Owned) => Promise<unknown>;

/** What names something of another's: it is not there. */
const MISSING: Readonly<Record<string, Call>> = {
  "tasks.get": ({ tasks }, { running }) => tasks.get(running),
  "tasks.explain": ({ tasks }, { waiting }) => tasks.explain(waiting),
  "tasks.logs": ({ tasks }, { running }) => tasks.logs(running),
  "tasks.cancel": ({ tasks }, { running }) => tasks.cancel(running),
  "tasks.retry": ({ tasks }, { failed }) => tasks.retry(failed),
  "tasks.submitAgain": ({ tasks }, { failed }) => tasks.submitAgain(failed),
  "tasks.wait": ({ tasks }, { failed }) => tasks.wait(failed),
  "tasks.getBatch": ({ tasks }, { batch }) => tasks.getBatch(batch),
  "tasks.cancelBatch": ({ tasks }, { batch }) => tasks.cancelBatch(batch),
  "sessions.get": ({ sessions }, { session }) => sessions.get(session),
  "sessions.delete": ({ sessions }, { session }) => sessions.delete(session),
  "schedules.get": ({ schedules }, { schedule }) => schedules.get(schedule),
  "schedules.update": ({ schedules }, { schedule }) => schedules.update(schedule, { status: "paused" }),
  "schedules.delete": ({ schedules }, { schedule }) => schedules.delete(schedule),
  "schedules.run": ({ schedules }, { schedule }) => schedules.run(schedule),
  "schedules.runs": ({ schedules }, { schedule }) => schedules.runs(schedule),
  "schedules.create": ({ schedules }, { agent }) =>
    schedules.create({ schedule: "every hour", message: "hello", agent }),
  "runs.get": ({ runs }, { run }) => runs.get(run),
  "agents.get": ({ agents }, { agent }) => agents.get(agent),
  "agents.update": ({ agents }, { agent }) => agents.update(agent, { maxInflight: 1 }),
  "agents.delete": ({ agents }, { agent }) => agents.delete(agent),
  "bulks.get": ({ bulks }, { bulk }) => bulks.get(bulk),
  "bulks.abort": ({ bulks }, { bulk }) => bulks.abort(bulk),
  "webhooks.get": ({ webhooks }, { delivery }) => webhooks.get(delivery),
  "webhooks.resend": ({ webhooks }, { delivery }) => webhooks.resend(delivery),
};

const PAGE = { count: 0, nextCursor: null };

/** What lists, counts or ends: there is nothing. */
const EMPTY: Readonly<Record<string, { readonly call: Call; readonly answer: unknown }>> = {
  "tasks.list": {
    call: async ({ tasks }, { batch, session, schedule, agent }) => [
      await tasks.list(),
      await tasks.list({ batchId: batch }),
      await tasks.list({ sessionKey: session }),
      await tasks.list({ scheduleId: schedule }),
      await tasks.list({ agentId: agent }),
    ],
    answer: Array.from({ length: 5 }, () => ({ tasks: [], ...PAGE })),
  },
  "tasks.listRows": {
    call: async ({ tasks }, { running, batch, agent }) => [
      await tasks.listRows(),
      await tasks.listRows({ q: running }),
      await tasks.listRows({ q: batch }),
      await tasks.listRows({ order: "completed", agentId: agent }),
    ],
    answer: Array.from({ length: 4 }, () => ({ tasks: [], ...PAGE })),
  },
  "tasks.counts": { call: ({ tasks }) => tasks.counts(), answer: { counts: {}, total: 0 } },
  "sessions.list": { call: ({ sessions }) => sessions.list(), answer: { sessions: [], ...PAGE } },
  "sessions.stop": {
    call: ({ sessions }, { session }) => sessions.stop(session),
    answer: { stopped: [], cancelled: [] },
  },
  "sessions.stopAll": {
    call: ({ sessions }, { session }) => sessions.stopAll(session),
    answer: { stopped: [], cancelled: [] },
  },
  "sessions.reset": {
    call: ({ sessions }, { session }) => sessions.reset(session),
    answer: { stopped: [], cancelled: [] },
  },
  "schedules.list": {
    call: ({ schedules }) => schedules.list(),
    answer: { schedules: [], count: 0, next_cursor: null },
  },
  "schedules.status": {
    call: ({ schedules }) => schedules.status(),
    answer: { active: 0, paused: 0, running: 0, next_fire_at: 0 },
  },
  "schedules.upcoming": {
    call: ({ schedules }) => schedules.upcoming(),
    answer: { moments: [], truncated: false },
  },
  "runs.list": { call: ({ runs }) => runs.list(), answer: expect.objectContaining({ runs: [], count: 0 }) },
  "lanes.clear": { call: ({ lanes }) => lanes.clear("tasks"), answer: { cancelled: 0 } },
  "bulks.preview": {
    call: async ({ bulks }, { running, failed, session }) => [
      await bulks.preview({ action: "cancel", ids: [running] }),
      await bulks.preview({ action: "delete", ids: [failed] }),
      await bulks.preview({ action: "cancel", filter: { sessionKey: session } }),
    ],
    answer: Array.from({ length: 3 }, () => ({ matched: 0, capped: false, sample: [] })),
  },
  "bulks.start": {
    call: async ({ bulks }, { running, session }) => [
      (await bulks.start({ action: "cancel", ids: [running] })).matched,
      (await bulks.start({ action: "cancel", filter: { sessionKey: session } })).matched,
    ],
    answer: [0, 0],
  },
  "webhooks.deliveries": {
    call: async ({ webhooks }, { running }) => [
      await webhooks.deliveries(),
      await webhooks.deliveries({ taskId: running }),
    ],
    answer: Array.from({ length: 2 }, () => ({ deliveries: [], ...PAGE })),
  },
  events: {
    call: async (tenant, { agent, batch, session, schedule }) => [
      await eventsOf(tenant),
      await eventsOf(tenant, { agentId: agent }),
      await eventsOf(tenant, { batchId: batch }),
      await eventsOf(tenant, { sessionKey: session }),
      await eventsOf(tenant, { scheduleId: schedule }),
    ],
    answer: [[], [], [], [], []],
  },
  eventPage: {
    call: async (tenant, { running }) => [
      await tenant.eventPage(),
      await tenant.eventPage({ after: 0 }),
      await tenant.eventPage({ taskId: running }),
    ],
    answer: Array.from({ length: 3 }, () => ({ events: [], count: 0, next: null })),
  },
  notifications: { call: notificationsOf, answer: [] },
  waiting: { call: (tenant) => tenant.waiting(), answer: { reasons: [], total: 0 } },
  stats: {
    call: async (tenant) => {
      const { queue, metrics } = await tenant.stats();
      return { queue, submitted: metrics.tasksSubmitted, agents: metrics.agents };
    },
    answer: { queue: { totalQueued: 0, totalInflight: 0, agentCounts: {} }, submitted: 0, agents: {} },
  },
  statsSeries: {
    call: async (tenant) => (await tenant.statsSeries({ by: "agent" })).series,
    answer: [],
  },
};

/** Calls that create something with the same names in the own tenant, and what each returns. */
const OWN: Readonly<Record<string, Call>> = {
  "tasks.submit": async ({ tasks }, { idempotencyKey, running }) => {
    const first = await tasks.submit({ agentId: "held", payload: 1, idempotencyKey, dependsOn: [running] });
    expect(first.taskId).not.toBe(running);
    const { reasons } = await tasks.explain(first.taskId);
    expect(reasons).toMatchObject([{ code: "unknown_task", taskId: running }]);
    return [first, reasons];
  },
  "tasks.submitMany": ({ tasks }, { idempotencyKey }) =>
    tasks.submitMany([{ agentId: "held", payload: 1, idempotencyKey: `${idempotencyKey}2` }]),
  "tasks.submitBatch": ({ tasks }) => tasks.submitBatch({ tasks: [{ payload: 1 }] }),
  "sessions.send": async ({ sessions }, { session }) => {
    const sent = await sessions.send(session, { message: "hello" });
    expect(sent).toMatchObject({ merged: false });
    return sent;
  },
  "sessions.ask": async ({ sessions }, { session }) => {
    const asked = sessions.ask(`${session}2`, { message: "hello" });
    await world.clock.advance(1_000);
    return asked;
  },
  "sessions.update": async ({ sessions }, { session }) => {
    const updated = await sessions.update(session, { cap: 3 });
    expect(updated).toMatchObject({ running: 0, queued: 0, generation: 0 });
    return { ...updated, key: null };
  },
  "tasks.dryRun": ({ tasks }, { idempotencyKey }) =>
    tasks.dryRun({ agentId: "held", payload: 1, idempotencyKey }),
  "schedules.dryRun": ({ schedules }) => schedules.dryRun({ schedule: "every hour", message: "look" }),
  "schedules.preview": ({ schedules }) => schedules.preview({ schedule: "every hour" }),
  "writs.carryOut": async ({ writs }, { schedule }) => {
    const listed = await writs.carryOut({ text: "/schedule list" });
    expect(listed.output).toContain("(none)");
    const cancelled = await writs.carryOut({ text: `/schedule cancel ${schedule}` });
    expect(cancelled).toMatchObject({
      ok: false,
      output: expect.stringContaining(`no schedule #${schedule}`),
    });
    return [listed, cancelled];
  },
  "lanes.list": ({ lanes }) => lanes.list(),
  "lanes.put": ({ lanes }) => lanes.put("spare", { concurrency: 1 }),
  "agents.list": ({ agents }) => agents.list(),
  "agents.create": async ({ agents }, { agent }) => {
    const created = await agents.create({ id: agent, maxInflight: 7 });
    expect(created).toEqual({ id: agent, maxInflight: 7, source: "stored" });
    return null;
  },
  metrics: (tenant) => tenant.metrics(),
};

/** Names of all there is to call, as in `tasks.submit`. */
function methodsOf(tenant: LocalTenant): string[] {
  const areas = [
    "tasks",
    "sessions",
    "schedules",
    "runs",
    "writs",
    "lanes",
    "agents",
    "webhooks",
    "bulks",
  ] as const;
  const own = ["events", "eventPage", "notifications", "waiting", "stats", "statsSeries", "metrics"];
  return [...areas.flatMap((area) => Object.keys(tenant[area]).map((name) => `${area}.${name}`)), ...own];
}

describe("one tenant", () => {
  test("is held to every method there is", () => {
    const known = [...Object.keys(MISSING), ...Object.keys(EMPTY), ...Object.keys(OWN)];
    expect(known.toSorted()).toEqual(methodsOf(world.other).toSorted());
  });

  test.each(Object.entries(MISSING))("finds nothing of another by its id: %s", async (_name, call) => {
    const { acme, other, owned } = world;
    const before = await sightOf(acme, owned);
    await expect(call(other, owned)).rejects.toMatchObject({ code: "not_found" });
    expect(await sightOf(acme, owned)).toEqual(before);
    // Where it is, it is found: the test could fail.
    await call(acme, owned).catch((error) => expect(error).not.toMatchObject({ code: "not_found" }));
  });

  test.each(Object.entries(EMPTY))("sees nothing of another: %s", async (_name, { call, answer }) => {
    const { acme, other, owned } = world;
    const before = await sightOf(acme, owned);
    expect(await call(other, owned)).toEqual(answer);
    expect(await sightOf(acme, owned)).toEqual(before);
    expect(await call(acme, owned)).not.toEqual(answer);
  });

  test.each(Object.entries(OWN))("makes and reads only what is its own: %s", async (_name, call) => {
    const { acme, other, owned } = world;
    const before = await sightOf(acme, owned);
    const shown = JSON.stringify(await call(other, owned), (key, value) =>
      key === "sessionKey" ? null : value,
    );
    expect(shown).not.toContain(SECRET);
    expect(await sightOf(acme, owned)).toEqual(before);
  });

  test("that was never created sees nothing", async () => {
    const { rota, owned } = world;
    const unknown = rota.tenant("unknown");
    for (const [name, { call, answer }] of Object.entries(EMPTY)) {
      expect([name, await call(unknown, owned)]).toEqual([name, answer]);
    }
  });

  test("has agents of the same id that the executor of another tenant runs", async () => {
    const { rota, acme, other } = world;
    const server = await serve((_request, response) => response.end(JSON.stringify("from the server")));
    await acme.agents.create({ id: "twin", executor: { type: "echo" } });
    await other.agents.create({ id: "twin", executor: { type: "http", url: server } });
    const submit = async (tenant: LocalTenant) => {
      const { taskId } = await tenant.tasks.submit({ agentId: "twin", payload: "echoed" });
      return tenant.tasks.wait(taskId);
    };
    expect((await submit(acme)).result).toBe("echoed");
    expect((await submit(other)).result).toBe("from the server");
    const lost = await rota.tasks.submit({ agentId: "twin", payload: 1 });
    expect((await rota.tasks.explain(lost.taskId)).reasons).toMatchObject([{ code: "no_executor" }]);
    await acme.agents.delete("twin");
    expect((await submit(other)).result).toBe("from the server");
  });

  test("gets its own events and no others, while the whole installation gets all", async () => {
    const { rota, acme, other, clock } = world;
    const all: RotaEvent[] = [];
    rota.onEvent((event) => {
      all.push(event);
    });
    const [readByAcme, readByOther]: [RotaEvent[], RotaEvent[]] = [[], []];
    const controller = new AbortController();
    const listen = async (tenant: LocalTenant, heard: RotaEvent[]) => {
      for await (const event of tenant.events({ signal: controller.signal })) heard.push(event);
    };
    const listening = [listen(acme, readByAcme), listen(other, readByOther)];
    await settle();
    const mine = await other.tasks.submit({ payload: 1 });
    const theirs = await acme.tasks.submit({ payload: 1 });
    await clock.advance(0);
    await settle();
    controller.abort();
    await Promise.all(listening);
    expect(new Set(readByOther.map(({ taskId }) => taskId))).toEqual(new Set([mine.taskId]));
    expect(new Set(readByAcme.map(({ taskId }) => taskId))).toEqual(new Set([theirs.taskId]));
    expect(new Set(all.map(({ taskId }) => taskId))).toEqual(new Set([mine.taskId, theirs.taskId]));
  });

  test("has metrics of its own agents, under their names", async () => {
    const { rota, acme, other, owned } = world;
    await other.tasks.submit({ agentId: "quagga", payload: 1 });
    await settle();
    expect(await acme.metrics()).toContain(`agent="${owned.agent}"`);
    expect(await acme.metrics()).not.toContain("quagga");
    expect(await other.metrics()).toContain('rota_tasks_submitted_total{agent="quagga",lane="tasks"} 1');
    for (const text of [await other.metrics(), await rota.metrics()]) expect(text).not.toContain(SECRET);
  });

  test("cannot be reached through the schedules of another that fire", async () => {
    const { acme, other, clock, owned } = world;
    await clock.advance(HOUR);
    expect((await acme.schedules.runs(owned.schedule)).runs.length).toBeGreaterThan(1);
    expect((await other.tasks.list()).tasks).toEqual([]);
    expect(await notificationsOf(other)).toEqual([]);
    expect((await notificationsOf(acme)).length).toBeGreaterThan(0);
  });
});
