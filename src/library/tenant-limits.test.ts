import { describe, expect, test } from "vitest";
import { openTestRota } from "../../test/support/rota.ts";
import { createTenant, startedRota, stateOf } from "../../test/support/tenants.ts";
import type { LocalTenant } from "../interface/rota.ts";

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

  test("on schedules holds for one that is over and is to go on, and for writs", async () => {
    const { rota, clock } = await startedRota();
    const { tenant } = await createTenant(rota, { maxSchedules: 1 });
    const { scheduled_task } = await tenant.schedules.create({ schedule: "in 1 minute", message: "hello" });
    await clock.advance(MINUTE + SECOND);
    expect((await tenant.schedules.get(scheduled_task.id)).status).toBe("completed");
    await tenant.schedules.create({ schedule: "every hour", message: "hello" });
    const full = { code: "conflict", details: { maxSchedules: 1 } };
    const again = { schedule: "in 1 minute" };
    await expect(tenant.schedules.update(scheduled_task.id, again)).rejects.toMatchObject(full);
    expect((await tenant.schedules.get(scheduled_task.id)).status).toBe("completed");
    const { ok, output } = await tenant.writs.carryOut({ text: "/schedule every day: hello" });
    expect(ok).toBe(false);
    expect(output).toContain("ERR: the tenant may have 1 schedule that is not over: delete one first");
  });

  test("on schedules is 1000 unless its limits say otherwise, and none for the default tenant", async () => {
    const { rota } = await openTestRota();
    const { id, tenant } = await createTenant(rota);
    expect((await rota.tenants.get(id)).limits.maxSchedules).toBe(1_000);
    expect((await rota.tenants.get("default")).limits.maxSchedules).toBeNull();
    const make = ({ schedules }: Pick<LocalTenant, "schedules">) =>
      schedules.create({ schedule: "every hour", message: "hello" });
    const all = await Promise.allSettled(Array.from({ length: 1_005 }, () => make(tenant)));
    expect(all.filter(({ status }) => status === "fulfilled")).toHaveLength(1_000);
    for (let made = 0; made <= 1_000; made++) await make(rota);
    await rota.tenants.update(id, { limits: { maxSchedules: 1_001 } });
    await make(tenant);
    expect((await rota.tenants.update(id, { limits: { maxSchedules: null } })).limits.maxSchedules).toBe(
      1_000,
    );
    await expect(make(tenant)).rejects.toMatchObject({ code: "conflict" });
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
