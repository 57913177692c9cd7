import { describe, expect, test } from "vitest";
import { openTestRota } from "../../../test/support/rota.ts";
import { createTenant, startedRota, stateOf } from "../../../test/support/tenants.ts";
import type { LocalTenant } from "../../interface/rota.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;

describe("a limit of a tenant", () => {
  test("on waiting tasks refuses tasks beyond it, and none of other tenants", async () => {
    const { rota } = await openTestRota();
    const { id, tenant } = await createTenant(rota, { maxQueued: 2 });
    const other = await createTenant(rota);
    for (const agentId of ["a", "b"]) await tenant.tasks.submit({ agentId, payload: 1 });
    await expect(tenant.tasks.submit({ agentId: "c", payload: 1 })).rejects.toMatchObject({
      code: "queue_full",
      message: "rejected: global queue full",
      details: { agentId: "c", queued: 2, maxTenant: 2 },
    });
    expect((await tenant.tasks.list({ state: "rejected" })).tasks).toMatchObject([
      { agentId: "c", error: "rejected: global queue full" },
    ]);
    expect((await other.tenant.tasks.submit({ payload: 1 })).state).toBe("queued");
    await rota.tenants.update(id, { limits: { maxQueued: 3 } });
    expect((await tenant.tasks.submit({ agentId: "c", payload: 1 })).state).toBe("queued");
  });

  test("on what runs holds over all lanes and agents, and waiting callers are notified", async () => {
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
      message: "the tenant may have 2 active or paused schedules: delete one first",
    });
    await clock.advance(MINUTE + SECOND);
    await make("every hour");
    await rota.tenants.update(id, { limits: { maxSchedules: 1 } });
    await expect(make("every hour")).rejects.toThrow("may have 1 active or paused schedule: delete one");
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
    expect(output).toContain("ERR: the tenant may have 1 active or paused schedule: delete one first");
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

  test("on sessions with settings refuses more, and is ten thousand unless it says otherwise", async () => {
    const { rota } = await openTestRota();
    const { id, tenant } = await createTenant(rota, { maxSessions: 2 });
    await tenant.sessions.update("a", { cap: 3 });
    await tenant.sessions.send("b", { message: "hi", maxConcurrent: 2 });
    const full = {
      code: "conflict",
      message: "the tenant may have 2 sessions with settings: delete one first",
      details: { maxSessions: 2 },
    };
    await expect(tenant.sessions.update("c", { cap: 3 })).rejects.toMatchObject(full);
    await expect(tenant.sessions.send("c", { message: "hi", maxConcurrent: 2 })).rejects.toMatchObject(full);
    await tenant.sessions.send("c", { message: "hi" });
    await tenant.sessions.delete("a");
    await tenant.sessions.update("c", { cap: 3 });
    expect((await rota.tenants.update(id, { limits: { maxSessions: null } })).limits.maxSessions).toBe(
      10_000,
    );
    expect((await rota.tenants.get("default")).limits.maxSessions).toBeNull();
    await rota.sessions.update("a", { cap: 3 });
  });

  test("on agents refuses more, and is a thousand unless it says otherwise", async () => {
    const { rota } = await openTestRota();
    const { id, tenant } = await createTenant(rota, { maxAgents: 2 });
    for (const agent of ["a", "b"]) await tenant.agents.create({ id: agent });
    await expect(tenant.agents.create({ id: "c" })).rejects.toMatchObject({
      code: "conflict",
      message: "the tenant stores 2 agents and may store 2: delete one first",
      details: { agents: 2, maxAgents: 2 },
    });
    await rota.tenants.update(id, { limits: { maxAgents: null } });
    for (let n = 2; n < 1_000; n += 1) await tenant.agents.create({ id: `agent-${n}` });
    await expect(tenant.agents.create({ id: "c" })).rejects.toMatchObject({ details: { maxAgents: 1_000 } });
    await rota.agents.create({ id: "c" });
  });

  describe("on stored bytes", () => {
    const big = "x".repeat(10_000);
    const refused = { code: "quota_exceeded", status: 429, retryable: false };

    test("refuses tasks, batches and messages beyond it, stores nothing of them, and refuses none of other tenants", async () => {
      const { rota } = await openTestRota();
      const { id, tenant } = await createTenant(rota, { maxStoredBytes: 30_000 });
      const other = await createTenant(rota);
      for (let n = 0; n < 2; n += 1) await tenant.tasks.submit({ agentId: "held", payload: big });
      const { storedBytes } = await rota.tenants.get(id);
      expect(storedBytes).toBeGreaterThan(2 * (10_000 + 1_024));
      await expect(tenant.tasks.submit({ agentId: "held", payload: big })).rejects.toMatchObject({
        ...refused,
        details: { bytes: expect.any(Number), storedBytes, maxStoredBytes: 30_000 },
      });
      await expect(tenant.tasks.submitBatch({ tasks: [{ payload: big }] })).rejects.toMatchObject(refused);
      await expect(tenant.tasks.submitMany([{ payload: big }])).rejects.toMatchObject(refused);
      await expect(tenant.sessions.send("chat", { message: big })).rejects.toMatchObject(refused);
      expect((await rota.tenants.get(id)).storedBytes).toBe(storedBytes);
      expect((await tenant.tasks.list()).count).toBe(2);
      await other.tenant.tasks.submit({ payload: big });
      await tenant.tasks.submit({ payload: 1 });
      await rota.tenants.update(id, { limits: { maxStoredBytes: 100_000 } });
      await tenant.sessions.send("chat", { message: big });
    });

    test("gives the first task to what repeats its key, and refuses what is new beside it", async () => {
      const { rota } = await openTestRota();
      const { tenant } = await createTenant(rota, { maxStoredBytes: 42_000 });
      const keyed = (idempotencyKey: string) => ({ payload: big, idempotencyKey });
      const [one, two, three] = [keyed("1"), keyed("2"), keyed("3")];
      const chat = { message: big, sessionKey: "chat", idempotencyKey: "4" };
      const [first, second] = [await tenant.tasks.submit(one), await tenant.tasks.submit(chat)];
      const batch = await tenant.tasks.submitBatch({ tasks: [two] });
      const full = { payload: big };
      await expect(tenant.tasks.submit(full)).rejects.toMatchObject(refused);
      expect((await tenant.tasks.submit(one)).taskId).toBe(first.taskId);
      expect((await tenant.tasks.submit(chat)).taskId).toBe(second.taskId);
      expect(await tenant.tasks.submitBatch({ tasks: [two] })).toMatchObject({
        batchId: batch.batchId,
        taskIds: batch.taskIds,
      });
      expect((await tenant.tasks.submitMany([one, chat])).map(({ taskId }) => taskId)).toEqual([
        first.taskId,
        second.taskId,
      ]);
      const other = tenant.tasks.submit({ ...one, payload: "other" });
      await expect(other).rejects.toMatchObject({ code: "idempotency_conflict" });
      for (const more of [[one, full], [three]]) {
        await expect(tenant.tasks.submitMany(more)).rejects.toMatchObject(refused);
        await expect(tenant.tasks.submitBatch({ tasks: more })).rejects.toMatchObject(refused);
      }
      // New tasks may be small enough.
      expect(await tenant.tasks.submitMany([one, { payload: 1 }])).toHaveLength(2);
      expect((await tenant.tasks.list()).count).toBe(4);
    });

    test("holds for what comes at the same moment", async () => {
      const { rota } = await openTestRota();
      const { id, tenant } = await createTenant(rota, { maxStoredBytes: 50_000 });
      const many = await Promise.allSettled(
        Array.from({ length: 20 }, () => tenant.tasks.submit({ payload: big })),
      );
      expect(many.filter(({ status }) => status === "fulfilled")).toHaveLength(4);
      expect((await rota.tenants.get(id)).storedBytes).toBeLessThanOrEqual(50_000);
    });

    test("stores the results of what was accepted, however much they take, and lets it be retried", async () => {
      const { rota } = await startedRota();
      rota.agent("wordy", () => "y".repeat(50_000));
      const { id, tenant } = await createTenant(rota, { maxStoredBytes: 5_000 });
      const { taskId } = await tenant.tasks.submit({ agentId: "wordy", payload: 1 });
      const failing = await tenant.tasks.submit({ agentId: "unknown", payload: 1 });
      expect(await tenant.tasks.wait(taskId)).toMatchObject({ state: "done" });
      expect((await rota.tenants.get(id)).storedBytes).toBeGreaterThan(50_000);
      await expect(tenant.tasks.submit({ payload: 1 })).rejects.toMatchObject(refused);
      await tenant.tasks.cancel(failing.taskId);
      expect((await tenant.tasks.retry(failing.taskId)).state).toBe("queued");
    });

    test("lets schedules miss their runs, with the reason, in one row, until there is room", async () => {
      const { rota, clock } = await startedRota();
      const { id, tenant } = await createTenant(rota, { maxStoredBytes: 0 });
      const made = await tenant.schedules.create({ schedule: "every minute", message: "hello" });
      const once = await tenant.schedules.create({ schedule: "in 2 minutes", message: "hello" });
      const { id: schedule } = made.scheduled_task;
      for (let minute = 0; minute < 3; minute += 1) await clock.advance(MINUTE);
      await clock.advance(SECOND);
      const reason = "quota exceeded: the tenant stores as much as its `maxStoredBytes` allows";
      expect((await tenant.schedules.runs(schedule)).runs).toMatchObject([
        { status: "missed", moments: 3, reason },
      ]);
      expect(await tenant.schedules.get(once.scheduled_task.id)).toMatchObject({
        status: "failed",
        last_error: reason,
      });
      await expect(tenant.schedules.run(schedule, { mode: "force" })).rejects.toMatchObject(refused);
      await rota.tenants.update(id, { limits: { maxStoredBytes: 1_000_000 } });
      expect(await tenant.schedules.run(schedule, { mode: "force" })).toMatchObject({ ran: true });
      await clock.advance(MINUTE);
      expect((await tenant.schedules.runs(schedule)).runs.map(({ status }) => status)).not.toContain(
        "failed",
      );
      expect((await tenant.schedules.runs(schedule)).count).toBe(3);
    });

    test("counts what was there before it", async () => {
      const { rota } = await openTestRota();
      const { id, tenant } = await createTenant(rota);
      for (let n = 0; n < 5; n += 1) await tenant.tasks.submit({ payload: big });
      expect((await rota.tenants.get(id)).storedBytes).toBeNull();
      const { storedBytes } = await rota.tenants.update(id, { limits: { maxStoredBytes: 20_000 } });
      expect(storedBytes).toBeGreaterThan(50_000);
      await expect(tenant.tasks.submit({ payload: 1 })).rejects.toMatchObject(refused);
    });
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
