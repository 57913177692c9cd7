import { describe, expect, test } from "vitest";
import { openTestRota } from "../../test/support/rota.ts";
import { createTenant, startedRota, stateOf } from "../../test/support/tenants.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

describe("a limit of a tenant", () => {
  test("on what waits refuses what comes beyond it, and nobody else's", async () => {
    const { rota } = await openTestRota();
    const { id, tenant } = await createTenant(rota, { maxQueued: 2 });
    const other = await createTenant(rota);
    for (const agentId of ["a", "b"]) await tenant.tasks.submit({ agentId, payload: 1 });
    await expect(tenant.tasks.submit({ agentId: "c", payload: 1 })).rejects.toMatchObject({
      code: "queue_full",
      message: "rejected: tenant queue full",
      details: { agentId: "c", queued: 2, maxTenant: 2 },
    });
    expect((await tenant.tasks.list({ state: "rejected" })).tasks).toMatchObject([
      { agentId: "c", error: "rejected: tenant queue full" },
    ]);
    expect((await other.tenant.tasks.submit({ payload: 1 })).state).toBe("queued");
    await rota.tenants.update(id, { limits: { maxQueued: 3 } });
    expect((await tenant.tasks.submit({ agentId: "c", payload: 1 })).state).toBe("queued");
  });

  test("on what runs holds over all lanes and agents, and whoever waits is told", async () => {
    const { rota, held } = await startedRota();
    const { id, tenant } = await createTenant(rota, { maxInflight: 1 });
    rota.agent("other", held.executor);
    await tenant.tasks.submit({ agentId: "held", payload: 1 });
    const second = await tenant.tasks.submit({ agentId: "other", payload: 1, lane: "main" });
    expect(await held.startedAfterAWhile()).toBe(1);
    expect((await tenant.tasks.explain(second.taskId)).reasons).toMatchObject([
      { code: "tenant_full", message: "its tenant runs 1 task and may run 1" },
    ]);
    await rota.tasks.submit({ agentId: "held", payload: 1 });
    expect(await held.startedAfterAWhile()).toBe(2);
    // The slot that becomes free is one of another lane.
    await held.end();
    expect(await stateOf(tenant, second.taskId)).toBe("running");
    await tenant.tasks.submit({ agentId: "held", payload: 1 });
    expect(held.started).toBe(3);
    await rota.tenants.update(id, { limits: { maxInflight: null } });
    expect(await held.startedAfterAWhile()).toBe(4);
  });

  test("on the queue of the whole server keeps half of it for others", async () => {
    const { rota } = await openTestRota({
      options: { scheduler: { maxQueueSize: 9, maxQueueSizeTotal: 5 } },
    });
    const first = await createTenant(rota);
    const second = await createTenant(rota, { maxQueued: 7 });
    const submit = ({ tenant }: typeof first) => tenant.tasks.submit({ payload: 1 });
    for (let n = 0; n < 2; n++) await submit(first);
    await expect(submit(first)).rejects.toMatchObject({
      code: "queue_full",
      message: "rejected: server queue full",
      // The caller's own numbers, and nothing of the others.
      details: { agentId: "index", queued: 2, maxQueue: 9, maxPerAgent: 100 },
    });
    for (let n = 0; n < 2; n++) await submit(second);
    await rota.tasks.submit({ payload: 1 });
    await expect(submit(second)).rejects.toMatchObject({
      message: "rejected: server queue full",
      details: { queued: 2, maxQueue: 7 },
    });
    await rota.tenants.disable(second.id);
    await rota.tasks.submit({ payload: 1 });
    expect((await first.tenant.stats()).queue.totalQueued).toBe(2);
  });

  test("by the share of a lane leaves slots for a tenant without work yet, and `explain` says so", async () => {
    const options = { scheduler: { workerCount: 5, maxPerAgentInflight: 100 } };
    const { rota, held } = await startedRota({ options });
    const { tenant } = await createTenant(rota);
    let last = "";
    for (let n = 0; n < 8; n++) last = (await tenant.tasks.submit({ agentId: "held", payload: 1 })).taskId;
    expect(await held.startedAfterAWhile()).toBe(4);
    expect((await tenant.tasks.explain(last)).reasons).toMatchObject([
      {
        code: "tenant_at_lane_share",
        message: 'its tenant holds 4 slots of the lane "tasks" and may hold 4, so that others find some',
        lane: "tasks",
      },
      { code: "tasks_ahead" },
    ]);
    await rota.tasks.submit({ agentId: "held", payload: 1 });
    expect(await held.startedAfterAWhile()).toBe(5);
  });

  test("by the share of a lane lets a critical task take the slot of one of its own tenant's", async () => {
    const options = { scheduler: { workerCount: 5, maxPerAgentInflight: 100 } };
    const { rota, held } = await startedRota({ options });
    const { tenant } = await createTenant(rota);
    const submit = (priority: "low" | "critical") =>
      tenant.tasks.submit({ agentId: "held", payload: 1, priority, preemptible: true });
    for (let n = 0; n < 4; n++) await submit("low");
    expect(await held.startedAfterAWhile()).toBe(4);
    const { taskId } = await submit("critical");
    expect(await held.startedAfterAWhile()).toBe(5);
    expect(await stateOf(tenant, taskId)).toBe("running");
    expect((await tenant.tasks.counts()).counts).toEqual({ queued: 1, running: 4 });
  });

  test("by the share of a lane follows the configuration and the other tenants while tasks run", async () => {
    const options = { scheduler: { workerCount: 5, maxPerAgentInflight: 100 } };
    const { rota, held } = await startedRota({ options });
    for (let n = 0; n < 12; n++) await rota.tasks.submit({ agentId: "held", payload: 1 });
    expect(await held.startedAfterAWhile()).toBe(5);
    const { id } = await createTenant(rota);
    await held.end();
    expect(await held.startedAfterAWhile()).toBe(5);
    await held.end();
    expect(await held.startedAfterAWhile()).toBe(6);
    await rota.reload({ tenants: { maxLaneShare: 0.5 } });
    for (let n = 0; n < 2; n++) await held.end();
    expect(await held.startedAfterAWhile()).toBe(6);
    await rota.reload({ tenants: { maxLaneShare: 1 } });
    expect(await held.startedAfterAWhile()).toBe(8);
    await rota.tenants.disable(id);
    expect(await held.startedAfterAWhile()).toBe(9);
  });

  test("on schedules counts those that are not over", async () => {
    const { rota, clock } = await startedRota();
    const { id, tenant } = await createTenant(rota, { maxSchedules: 2 });
    const make = (schedule: string) => tenant.schedules.create({ schedule, message: "hello" });
    await make("in 1 minute");
    const all = await Promise.allSettled([make("every hour"), make("every day"), make("every week")]);
    expect(all.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected", "rejected"]);
    await expect(make("every hour")).rejects.toMatchObject({
      code: "conflict",
      message: "the tenant may have 2 schedules that are not over: delete one first",
    });
    await clock.advance(MINUTE + SECOND);
    await make("every hour");
    await rota.tenants.update(id, { limits: { maxSchedules: 1 } });
    await expect(make("every hour")).rejects.toThrow("may have 1 schedule that is not over: delete one");
    await rota.tenants.update(id, { limits: { maxSchedules: 3 } });
    await make("every hour");
    expect((await tenant.schedules.status()).active).toBe(3);
  });

  test("on streams counts those of events and notifications that are open", async () => {
    const { rota } = await openTestRota();
    const { id, tenant } = await createTenant(rota, { maxStreams: 2 });
    const events = tenant.events();
    const controller = new AbortController();
    tenant.notifications({ signal: controller.signal });
    const tooMany = { code: "rate_limited", details: { open: 2, maxStreams: 2 } };
    expect(() => tenant.events()).toThrow(expect.objectContaining(tooMany));
    expect(() => tenant.notifications()).toThrow(expect.objectContaining(tooMany));
    rota.events();
    controller.abort();
    const third = tenant.events();
    expect(() => tenant.events()).toThrow(expect.objectContaining(tooMany));
    await events.return?.();
    await third.return?.();
    await third.return?.();
    tenant.events();
    tenant.events();
    expect(() => tenant.events()).toThrow(expect.objectContaining(tooMany));
    await rota.tenants.update(id, { limits: { maxStreams: 3 } });
    tenant.events();
  });
});
