import { describe, expect, test } from "vitest";
import { openTestRota } from "../../../test/support/rota.ts";
import { asSharedStorage, type Meddler, openMemory } from "../../../test/support/storages.ts";
import { createTenant, startedRota, stateOf } from "../../../test/support/tenants.ts";
import type { LocalTenant } from "../../interface/rota.ts";
import { ManualClock, settle } from "../../testing/manual-clock.ts";
import { Latch, until } from "../../testing/signals.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

describe("a disabled tenant", () => {
  test("starts nothing, ends running tasks, accepts new ones, and continues once it is enabled", async () => {
    const { rota, held } = await startedRota({ options: { scheduler: { workerCount: 1 } } });
    const { id, tenant } = await createTenant(rota);
    const running = await tenant.tasks.submit({ agentId: "held", payload: 1 });
    const waiting = await tenant.tasks.submit({ payload: 2 });
    await settle();
    await rota.tenants.disable(id);
    const late = await tenant.tasks.submit({ payload: 3 });
    expect(late.state).toBe("queued");
    await held.end();
    const states = () => Promise.all([running, waiting, late].map(({ taskId }) => stateOf(tenant, taskId)));
    expect(await states()).toEqual(["done", "queued", "queued"]);
    await rota.tenants.enable(id);
    await settle();
    expect(await states()).toEqual(["done", "done", "done"]);
  });

  test("is the reason why a task waits, however it waits", async () => {
    const { rota, clock } = await startedRota();
    const { id, tenant } = await createTenant(rota);
    await rota.tenants.disable(id);
    const queued = await tenant.tasks.submit({ payload: 1 });
    const child = await tenant.tasks.submit({ payload: 1, dependsOn: [queued.taskId] });
    const runAt = new Date(clock.now() + HOUR).toISOString();
    const delayed = await tenant.tasks.submit({ payload: 1, runAt });
    const codes = async ({ taskId }: { taskId: string }) =>
      (await tenant.tasks.explain(taskId)).reasons.map(({ code }) => code);
    expect(await codes(queued)).toEqual(["tenant_disabled"]);
    expect(await codes(child)).toEqual(["tenant_disabled", "waiting_for_task"]);
    expect(await codes(delayed)).toEqual(["tenant_disabled", "not_before"]);
  });

  test("delays no other tenant", async () => {
    const { rota } = await startedRota({ options: { scheduler: { workerCount: 1 } } });
    const { id, tenant } = await createTenant(rota);
    await rota.tenants.disable(id);
    for (let i = 0; i < 20; i++) await tenant.tasks.submit({ payload: i });
    const { taskId } = await rota.tasks.submit({ payload: "mine" });
    expect((await rota.tasks.wait(taskId)).result).toBe("mine");
  });

  test("may be the default one, too", async () => {
    const { rota } = await startedRota();
    await rota.tenants.disable("default");
    const { taskId } = await rota.tasks.submit({ payload: 1 });
    await settle();
    expect(await stateOf(rota, taskId)).toBe("queued");
    await rota.tenants.enable("default");
    expect(await rota.tasks.wait(taskId)).toMatchObject({ state: "done" });
  });
});

describe("an agent of the program", () => {
  test("may run as many for each tenant as configured, also for one that comes later", async () => {
    const { rota, held } = await startedRota({ options: { scheduler: { workerCount: 20 } } });
    rota.agent("held", { maxInflight: 2 }, held.executor);
    const tenants = [await createTenant(rota), await createTenant(rota)];
    for (const { tenant } of tenants) {
      for (let i = 0; i < 4; i++) await tenant.tasks.submit({ agentId: "held", payload: i });
    }
    expect(await held.startedAfterAWhile()).toBe(4);
    rota.agent("held", { maxInflight: 3 }, held.executor);
    expect(await held.startedAfterAWhile()).toBe(6);
  });

  test("costs the storage nothing for tenants that it does not bound", async () => {
    const configured: string[] = [];
    const { rota, clock, storage } = await openTestRota({
      meddler: {
        before: ({ operation, params }) => {
          if (operation === "agents.configure") configured.push(`${params.agent} of ${params.tenant}`);
        },
      },
    });
    const { id } = await createTenant(rota);
    await storage.agents.configure({ tenant: id, agent: "left-behind", maxInflight: 1 });
    rota.agent("free", () => {});
    rota.agent("left-behind", () => {});
    rota.agent("bound", { maxInflight: 1 }, () => {});
    await rota.start();
    await clock.advance(0);
    expect(configured.filter((each) => each.endsWith(id)).toSorted()).toEqual([
      `bound of ${id}`,
      `left-behind of ${id}`,
    ]);
    expect(await storage.agents.bounded()).toMatchObject([
      { tenant: "default", agent: "bound" },
      { tenant: id, agent: "bound" },
    ]);
  });

  test("has the bound that the configuration gives it by a reload, for all tenants or for none", async () => {
    let fails = false;
    const { rota, storage } = await startedRota({
      options: { agents: { bound: { maxInflight: 1 } } },
      meddler: {
        before: ({ operation, params }) => {
          if (operation === "agents.configure" && fails && params.tenant !== "default")
            throw new Error("no room");
        },
      },
    });
    const { id } = await createTenant(rota);
    const bounds = async () =>
      (await storage.agents.bounded()).filter(({ agent }) => agent === "bound").map(({ tenant }) => tenant);
    expect(await bounds()).toEqual(["default", id]);
    fails = true;
    await expect(rota.reload({ agents: {} })).rejects.toThrow("no room");
    expect(await bounds()).toEqual(["default", id]);
    fails = false;
    await rota.reload({ agents: {} });
    expect(await bounds()).toEqual([]);
  });

  test("gets the tenant of its task, and so does the function that estimates how full a session is", async () => {
    const asked: unknown[] = [];
    const { rota, clock } = await startedRota({
      options: {
        estimateTokens: (key, { tenantId }) => {
          asked.push([key, tenantId]);
          return null;
        },
      },
    });
    rota.agent("who", (_task, { tenantId }) => tenantId);
    const { id, tenant } = await createTenant(rota);
    const sent = await tenant.sessions.send("talk", { message: "hello", agentId: "who" });
    await clock.advance(SECOND);
    expect(await tenant.tasks.get(sent.taskId as string)).toMatchObject({ result: id });
    await settle();
    expect(asked).toEqual([
      ["talk", id],
      ["talk", id],
    ]);
  });
});

test("a task of a tenant costs the storage no call more than one of the default tenant", async () => {
  const calls: string[] = [];
  const { rota } = await startedRota({ meddler: { before: ({ operation }) => void calls.push(operation) } });
  const { tenant } = await createTenant(rota, { maxInflight: 5, maxQueued: 5 });
  const callsOf = async (owner: Pick<LocalTenant, "tasks">) => {
    await settle();
    calls.length = 0;
    await owner.tasks.submit({ payload: 1 });
    await settle();
    return calls.filter((operation) => operation !== "events.read").toSorted();
  };
  expect(await callsOf(tenant)).toEqual(await callsOf(rota));
  expect(calls).toContain("tasks.finishAndClaim");
});

describe("one tenant with many agents", () => {
  test("does not crowd out another with one", async () => {
    const { rota } = await openTestRota({ options: { scheduler: { workerCount: 4 } } });
    const begun: string[] = [];
    const executor = (_task: unknown, { tenantId }: { tenantId: string }) => {
      begun.push(tenantId);
    };
    for (let i = 0; i < 100; i++) rota.agent(`agent-${i}`, executor);
    const crowd = await createTenant(rota);
    const loner = await createTenant(rota);
    for (let i = 0; i < 100; i++) {
      await crowd.tenant.tasks.submitMany([1, 2].map((payload) => ({ agentId: `agent-${i}`, payload })));
    }
    await loner.tenant.tasks.submitMany(
      Array.from({ length: 10 }, (_, payload) => ({ agentId: "agent-0", payload })),
    );
    await rota.start();
    await until(() => begun.length === 210, "all tasks to start");
    // Every other start is its own, from the first group on.
    const places = begun.flatMap((id, place) => (id === loner.id ? [place] : []));
    expect(places.at(-1)).toBeLessThan(24);
  });
});

describe("a deleted tenant", () => {
  test("leaves nothing, however much it owned and whatever ran", async () => {
    const { rota, clock, storage, held } = await startedRota();
    const { id, tenant } = await createTenant(rota);
    const other = await createTenant(rota);
    const kept = await other.tenant.tasks.submit({ agentId: "held", payload: 1 });
    await tenant.tasks.submit({ agentId: "held", payload: 1 });
    await settle();
    for (let i = 0; i < 12; i++) {
      const tasks = Array.from({ length: 50 }, () => ({ agentId: `agent-${i}`, payload: 1 }));
      await tenant.tasks.submitMany(tasks);
    }
    await tenant.schedules.create({ schedule: "every hour", message: "hello" });
    await tenant.sessions.send("talk", { message: "hello", agentId: "held" });
    await tenant.agents.create({ id: "own", executor: { type: "echo" } });
    expect(await rota.tenants.delete(id)).toEqual({ deleted: true });
    expect(await tenant.tasks.counts()).toEqual({ counts: {}, total: 0 });
    expect((await tenant.sessions.list()).count).toBe(0);
    expect((await tenant.schedules.list()).count).toBe(0);
    expect((await tenant.agents.list()).agents.map(({ id: agent }) => agent)).toEqual(["held", "index"]);
    expect(await tenant.metrics()).not.toContain("agent-3");
    expect(await storage.counters.recountAll()).toEqual([]);
    expect(await stateOf(other.tenant, kept.taskId)).toBe("running");
    await held.end(2);
    expect(await stateOf(other.tenant, kept.taskId)).toBe("done");
    await clock.advance(2 * HOUR);
    expect(await tenant.tasks.counts()).toEqual({ counts: {}, total: 0 });
  });

  test("accepts nothing any more, even through handles made before", async () => {
    const { rota } = await startedRota();
    const { id, tenant } = await createTenant(rota);
    await rota.tenants.delete(id);
    const gone = { code: "not_found", message: "tenant not found" };
    const calls = [
      () => tenant.tasks.submit({ payload: 1 }),
      () => tenant.tasks.submitMany([{ payload: 1 }]),
      () => tenant.tasks.submitBatch({ tasks: [{ payload: 1 }] }),
      () => tenant.sessions.send("talk", { message: "hello" }),
      () => tenant.sessions.update("talk", { cap: 1 }),
      () => tenant.schedules.create({ schedule: "every hour", message: "hello" }),
      () => tenant.agents.create({ id: "own" }),
      () => rota.tenant(id).tasks.submit({ payload: 1 }),
    ];
    for (const call of calls) await expect(call()).rejects.toMatchObject(gone);
    expect(await tenant.tasks.counts()).toEqual({ counts: {}, total: 0 });
    await expect(rota.tenants.delete(id)).rejects.toMatchObject(gone);
  });

  test("takes along what was on its way in", async () => {
    const written = new Latch();
    const { rota } = await startedRota({
      meddler: { before: ({ operation }) => (operation === "tasks.insert" ? written.opened : undefined) },
    });
    const { id, tenant } = await createTenant(rota);
    const submitted = tenant.tasks.submit({ payload: 1 });
    await settle();
    const deleted = rota.tenants.delete(id);
    await settle();
    written.open();
    await Promise.all([submitted, deleted]);
    expect(await tenant.tasks.counts()).toEqual({ counts: {}, total: 0 });
  });

  test("takes work in again when it could not be deleted after all", async () => {
    let fails = true;
    const { rota } = await startedRota({
      meddler: {
        before: ({ operation }) => {
          if (operation === "tenants.delete" && fails) throw new Error("no room");
        },
      },
    });
    const { id, tenant } = await createTenant(rota);
    await expect(rota.tenants.delete(id)).rejects.toThrow("no room");
    expect((await tenant.tasks.submit({ payload: 1 })).state).toBe("queued");
    fails = false;
    await rota.tenants.delete(id);
    expect(await tenant.tasks.counts()).toEqual({ counts: {}, total: 0 });
  });
});

describe("on several nodes", () => {
  async function nodes({ isDeaf = false, meddler = {} }: { isDeaf?: boolean; meddler?: Meddler } = {}) {
    const clock = new ManualClock();
    const storage = await openMemory(clock);
    const shared = asSharedStorage(storage);
    const a = await startedRota({ clock, storage: shared, meddler });
    const b = await startedRota({
      clock,
      storage: isDeaf ? { ...shared, subscribe: () => () => {} } : shared,
    });
    return { a: a.rota, b: b.rota, clock, storage };
  }

  test("what one does with a tenant holds on all", async () => {
    const { a, b, clock } = await nodes();
    const { id, tenant } = await createTenant(a, { maxStreams: 0 });
    await settle();
    expect(() => b.tenant(id).events()).toThrow(expect.objectContaining({ code: "rate_limited" }));
    await a.tenants.disable(id);
    const { taskId } = await b.tenant(id).tasks.submit({ payload: 1 });
    await clock.advance(10 * SECOND);
    expect(await stateOf(tenant, taskId)).toBe("queued");
    await b.tenants.enable(id);
    await clock.advance(SECOND);
    expect(await stateOf(tenant, taskId)).toBe("done");
    const deleted = a.tenants.delete(id);
    await clock.advance(5 * SECOND);
    await deleted;
    await settle();
    await expect(b.tenant(id).tasks.submit({ payload: 1 })).rejects.toMatchObject({ code: "not_found" });
  });

  test("nothing is left of what another accepted before it knew that the tenant is deleted", async () => {
    const { a, b, clock, storage } = await nodes({ isDeaf: true });
    const { id } = await createTenant(a);
    await settle();
    const deleted = a.tenants.delete(id);
    await clock.advance(SECOND);
    await b.tenant(id).tasks.submit({ payload: 1 });
    await b.tenant(id).schedules.create({ schedule: "every minute", message: "late" });
    await clock.advance(5 * SECOND);
    expect(await deleted).toEqual({ deleted: true });
    expect((await storage.tasks.list({ tenant: id, limit: 9 })).tasks).toEqual([]);
    expect(await storage.schedules.page({ tenant: id, after: 0, limit: 9 })).toEqual([]);
    expect(await storage.tenants.get({ id })).toBeNull();
  });

  test("another node continues a deletion whose node is gone", async () => {
    let slices = 0;
    const { a, b, clock, storage } = await nodes({
      meddler: {
        before: ({ operation }) => {
          if (operation === "tenants.delete" && ++slices > 1) throw new Error("killed");
        },
      },
    });
    const { id, tenant } = await createTenant(a);
    await tenant.tasks.submit({ agentId: "held", payload: 1 });
    const deleted = expect(a.tenants.delete(id)).rejects.toThrow("killed");
    await clock.advance(4 * SECOND);
    await deleted;
    const stopped = a.stop({ graceMs: 0 });
    await clock.advance(SECOND);
    await stopped;
    // It is not found, cannot be enabled, and gets no keys.
    const gone = { code: "not_found" };
    await expect(b.tenants.get(id)).rejects.toMatchObject(gone);
    await expect(b.tenants.enable(id)).rejects.toMatchObject(gone);
    await expect(b.tenants.update(id, { name: "x" })).rejects.toMatchObject(gone);
    await expect(b.keys.create({ role: "viewer", name: "x", tenantId: id })).rejects.toMatchObject(gone);
    await expect(b.tenant(id).tasks.submit({ payload: 1 })).rejects.toMatchObject(gone);
    expect((await b.tenants.list()).tenants.map((each) => each.id)).toEqual(["default"]);
    expect(await storage.tenants.get({ id })).toMatchObject({ deleting: true });
    await clock.advance(30 * SECOND);
    expect(await storage.tenants.get({ id })).toBeNull();
    expect((await storage.tasks.list({ tenant: id, limit: 9 })).tasks).toEqual([]);
  });

  test("agents of a deleted tenant are known to no node any more", async () => {
    const { a, b, clock } = await nodes();
    const { id } = await createTenant(a);
    await a.tenant(id).agents.create({ id: "own", executor: { type: "echo" } });
    await settle();
    expect(await b.tenant(id).agents.get("own")).toMatchObject({ id: "own" });
    const deleted = a.tenants.delete(id);
    await clock.advance(5 * SECOND);
    await deleted;
    await settle();
    await expect(b.tenant(id).agents.get("own")).rejects.toMatchObject({ code: "not_found" });
  });

  test("an agent that one stored for a tenant works on another for that tenant alone", async () => {
    const { a, b, clock } = await nodes();
    const { id } = await createTenant(a);
    await a.tenant(id).agents.create({ id: "own", executor: { type: "echo" } });
    const mine = await b.tenant(id).tasks.submit({ agentId: "own", payload: "hello" });
    const others = await b.tasks.submit({ agentId: "own", payload: "hello" });
    await clock.advance(5 * SECOND);
    expect(await b.tenant(id).tasks.get(mine.taskId)).toMatchObject({ state: "done", result: "hello" });
    expect(await b.tasks.explain(others.taskId)).toMatchObject({ reasons: [{ code: "no_executor" }] });
  });
});

test("the doctor reports that something is wrong with other tenants, and not what they have", async () => {
  const { rota, storage, clock } = await openTestRota();
  const { id, tenant } = await createTenant(rota);
  const { scheduled_task } = await tenant.schedules.create({
    schedule: "every hour",
    message: "hello",
    name: "zebra",
  });
  const record = await storage.schedules.get({ tenant: id, id: scheduled_task.id });
  if (record === null) throw new Error("There is such a schedule.");
  const { revision } = record;
  const nextFireAt = clock.now() + 90 * MINUTE;
  const name = { tenant: id, id: scheduled_task.id };
  await storage.schedules.fire({ fires: [{ ...name, revision, runs: [], nextFireAt, pauses: null }] });
  const check = (await rota.doctor()).checks.find((each) => each.name === "schedules");
  expect(check?.findings).toEqual([`Tenant ${id}: 2 things are wrong with its schedules.`]);
});

test.each([["", "acme corp", "a\nb", "x".repeat(65), "ä", null, 5]])(
  "no tenant is found by what cannot be the id of one: %j",
  async (...ids) => {
    const { rota } = await openTestRota();
    for (const id of ids) {
      expect(() => rota.tenant(id as string)).toThrow(expect.objectContaining({ code: "invalid_field" }));
    }
  },
);

test("more tenants are served than are cached", async () => {
  const { rota } = await openTestRota();
  const first = rota.tenant("tenant-0");
  await first.tasks.submit({ payload: 1 });
  for (let i = 1; i <= 1_100; i++) rota.tenant(`tenant-${i}`);
  expect(rota.tenant("tenant-0")).not.toBe(first);
  expect((await rota.tenant("tenant-0").tasks.counts()).total).toBe(1);
  expect((await first.tasks.counts()).total).toBe(1);
  expect(rota.tenant("tenant-1100")).toBe(rota.tenant("tenant-1100"));
});
