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
