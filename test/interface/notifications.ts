import { describe, expect, test } from "vitest";
import type { Notification, Notifications } from "../../src/interface/notifications.ts";
import type { NewScheduleInput } from "../../src/interface/schedules.ts";
import { settle } from "../../src/testing/manual-clock.ts";
import { Held } from "../support/held.ts";
import { errorOf, type Open, type Opened } from "./opened.ts";

/** The clock of the tests begins here, in seconds. */
const MIDNIGHT = Date.UTC(2026, 0, 1) / 1_000;
const MINUTE = 60_000;

/** Reads this many, then ends. */
async function take(notifications: AsyncIterable<Notification>, count: number): Promise<Notification[]> {
  const taken: Notification[] = [];
  for await (const notification of notifications) if (taken.push(notification) === count) break;
  return taken;
}

async function create(
  { api }: Omit<Opened, "withKey">,
  input: Partial<NewScheduleInput> = {},
): Promise<number> {
  const schedule = { schedule: "every minute", message: "look around", ...input };
  return (await api.schedules.create(schedule)).scheduled_task.id;
}

/** A scheduler, and its notifications from the start. */
async function follow(open: Open, params: Parameters<Open>[0] = {}) {
  const opened = await open(params);
  const notifications: Notifications = opened.api.notifications({ after: 0 });
  await notifications.ready;
  const next = async () => (await notifications.next()).value as Notification;
  return { ...opened, next };
}

export function describeNotifications(open: Open): void {
  describe("notifications", () => {
    test("report that a run starts and how it ends, with what came of it", async () => {
      const { api, next, clock, rota } = await follow(open);
      rota.agent("research", async () => ({ found: 3 }));
      const task_id = await create({ api, rota, clock }, { agent: "research" });
      await clock.advance(MINUTE);
      const due = MIDNIGHT + 60;
      const run = { task_id, run_id: 1, agent_id: "research", due_at: due, moments: 1, timestamp: due };
      expect(await next()).toEqual({
        ...run,
        id: 1,
        kind: "run.started",
        status: "running",
        started_at: due,
        completed_at: 0,
      });
      expect(await next()).toEqual({
        ...run,
        id: 2,
        kind: "run.completed",
        status: "succeeded",
        started_at: due,
        completed_at: due,
        result_summary: '{"found":3}',
      });
    });

    test("report that a run failed for good, and why", async () => {
      const { api, next, clock, rota } = await follow(open);
      rota.agent("broken", async () => {
        throw new Error("no luck");
      });
      const task_id = await create({ api, rota, clock }, { agent: "broken", retry: { max_retries: 0 } });
      await clock.advance(MINUTE);
      await next();
      expect(await next()).toMatchObject({
        kind: "run.failed",
        task_id,
        status: "failed",
        error_message: "no luck",
        completed_at: MIDNIGHT + 60,
      });
    });

    test("report due times that were skipped or missed, and changes of schedules", async () => {
      const held = new Held();
      const { api, next, clock, rota } = await follow(open, {
        options: { executors: { message: held.executor } },
      });
      const opened = { api, rota, clock };
      const skipping = await create(opened);
      const missing = await create(opened, { schedule: "every 2 minutes", catch_up: "none" });
      await api.schedules.update(missing, { status: "paused" });
      expect(await next()).toMatchObject({ kind: "schedule.paused", task_id: missing, status: "paused" });
      await clock.advance(2 * MINUTE);
      expect(await next()).toMatchObject({ kind: "run.started", task_id: skipping, run_id: 1 });
      expect(await next()).toMatchObject({
        kind: "run.skipped",
        task_id: skipping,
        run_id: 2,
        status: "skipped",
        reason: "the previous run has not ended",
        started_at: 0,
        completed_at: MIDNIGHT + 120,
      });
      await api.schedules.delete(skipping);
      expect(await next()).toMatchObject({
        kind: "run.failed",
        run_id: 1,
        error_message: "schedule deleted",
      });
      expect(await next()).toMatchObject({
        kind: "schedule.canceled",
        task_id: skipping,
        status: "canceled",
      });
      await api.schedules.update(missing, { status: "active" });
      await settle();
      // The clock is set forward, past two of its moments.
      clock.set(clock.now() + 5 * MINUTE);
      await clock.advance(2 * MINUTE);
      expect(await next()).toMatchObject({
        kind: "run.missed",
        task_id: missing,
        status: "missed",
        moments: expect.any(Number),
        reason: expect.any(String),
      });
    });

    test("report why a schedule was paused whose agent is gone", async () => {
      const { api, next, clock, rota } = await follow(open);
      await api.agents.create({ id: "helper", executor: { type: "echo" } });
      const task_id = await create({ api, rota, clock }, { agent: "helper" });
      await api.agents.delete("helper");
      await clock.advance(MINUTE);
      const notified = [await next(), await next()].sort((one, other) => one.kind.localeCompare(other.kind));
      expect(notified).toMatchObject([
        { kind: "run.failed", task_id, error_message: 'agent "helper" not found' },
        { kind: "schedule.paused", task_id, reason: 'agent "helper" not found' },
      ]);
    });

    test("come from now on, or after the one that was seen last, and are the same for all readers", async () => {
      const opened = await open();
      const { api, rota, clock } = opened;
      await create(opened);
      await clock.advance(MINUTE);
      const live = api.notifications();
      await live.ready;
      expect(live.position).toBe(2);
      await clock.advance(MINUTE);
      const all = await take(api.notifications({ after: 0 }), 4);
      expect(all.map(({ id }) => id)).toEqual([1, 2, 3, 4]);
      expect(await take(rota.notifications({ after: 0 }), 4)).toEqual(all);
      expect(await take(api.notifications({ after: 1 }), 3)).toEqual(all.slice(1));
      expect(await take(live, 2)).toEqual(all.slice(2));
    });

    test("go on live once they have caught up", async () => {
      const opened = await open();
      await create(opened);
      await opened.clock.advance(MINUTE);
      const notifications = opened.api.notifications({ after: 1 });
      expect((await notifications.next()).value?.id).toBe(2);
      const next = notifications.next();
      await opened.clock.advance(MINUTE);
      expect((await next).value?.id).toBe(3);
      await notifications.return?.();
    });

    test("say which are no longer there", async () => {
      const opened = await open({ options: { schedules: { runRetentionDays: 1 } } });
      const { api, clock } = opened;
      const id = await create(opened);
      await clock.advance(MINUTE);
      await api.schedules.update(id, { status: "paused" });
      clock.set(clock.now() + 3 * 24 * 60 * MINUTE);
      await clock.advance(MINUTE);
      await api.schedules.delete(id);
      const gaps: { after: number; oldest: number }[] = [];
      const [first] = await take(api.notifications({ after: 1, onGap: (gap) => gaps.push(gap) }), 1);
      expect(first).toMatchObject({ id: 4, kind: "schedule.canceled" });
      expect(gaps).toEqual([{ after: 1, oldest: 4 }]);
    });

    test("end with their signal, and when they are left", async () => {
      const { api, clock } = await open({ start: false });
      const controller = new AbortController();
      const ended = api.notifications({ signal: controller.signal });
      const left = api.notifications();
      const nexts = [ended.next(), left.next()];
      await clock.advance(0);
      controller.abort();
      await left.return?.();
      for (const next of nexts) expect(await next).toEqual({ done: true, value: undefined });
    });

    test.each([-1, 1.5, "1"])("refuse to begin after %j", async (after) => {
      const { api } = await open({ start: false });
      expect(await errorOf((async () => api.notifications({ after: after as number }))())).toMatchObject({
        code: "invalid_field",
        details: { field: "after" },
      });
    });
  });

  test("events can be those of one schedule alone", async () => {
    const opened = await open();
    const { api, clock } = opened;
    const ids = [await create(opened), await create(opened)];
    const events = api.events({ scheduleId: ids[1] as number });
    await events.ready;
    await clock.advance(MINUTE);
    for (const type of ["task.created", "task.started", "task.completed"]) {
      expect((await events.next()).value).toMatchObject({ type, scheduleId: ids[1] });
    }
    await events.return?.();
    expect(await errorOf((async () => api.events({ scheduleId: 0 }).next())())).toMatchObject({
      code: "invalid_field",
      details: { field: "scheduleId" },
    });
  });
}
