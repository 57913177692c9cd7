import { describe, expect, test } from "vitest";
import type { NewScheduleInput, ScheduledTask } from "../../src/interface/schedules.ts";
import type { Task } from "../../src/model/task.ts";
import { settle } from "../../src/testing/manual-clock.ts";
import { until } from "../../src/testing/signals.ts";
import { Held } from "../support/held.ts";
import { serve } from "../support/http-server.ts";
import { errorOf, type Open, type Opened } from "./opened.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const MIDNIGHT = Date.UTC(2026, 0, 1) / SECOND;

async function create({ api }: Opened, input: Partial<NewScheduleInput> = {}): Promise<ScheduledTask> {
  const when = { schedule: "every 1 min", tz: "UTC" };
  const hasWork = input.instruction !== undefined || input.payload !== undefined;
  const work = hasWork ? {} : { message: "look around" };
  return (await api.schedules.create({ ...when, ...work, ...input })).scheduled_task;
}

/** The kinds of work of runs, and the limits after which a schedule ends or pauses. */
export function describeScheduleLimits(open: Open): void {
  describe("what a schedule says of its runs", () => {
    test("is shown as it was given, and is what its tasks carry", async () => {
      const seen: Task[] = [];
      const opened = await open({ options: { lanes: { night: 5 } } });
      const { api, rota, clock } = opened;
      rota.agent("a", (task) => void seen.push(task));
      const made = await create(opened, {
        agent: "a",
        instruction: "sum up",
        lane: "night",
        priority: "high",
        metadata: { team: "support" },
        pause_after_failures: 0,
      });
      expect(made).toMatchObject({
        message: null,
        instruction: "sum up",
        lane: "night",
        priority: 1,
        metadata: { team: "support" },
        pause_after_failures: 0,
        consecutive_failures: 0,
        paused_reason: null,
      });
      for (const field of ["payload", "callback_url", "max_runs", "until"])
        expect(made).not.toHaveProperty(field);
      const other = await create(opened, { agent: "a", payload: { n: [1] }, lane: "nowhere" });
      expect(other).toMatchObject({ message: null, payload: { n: [1] } });
      const plain = await create(opened, { agent: "a" });
      for (const field of ["instruction", "payload", "lane", "priority", "metadata"])
        expect(plain).not.toHaveProperty(field);
      await clock.advance(MINUTE);
      await settle();
      expect(seen.toSorted((a, b) => (a.scheduleId ?? 0) - (b.scheduleId ?? 0))).toMatchObject([
        {
          kind: "instruction",
          instruction: "sum up",
          lane: "night",
          priority: 1,
          metadata: { team: "support" },
        },
        { kind: "custom", payload: { n: [1] }, lane: "main", priority: 2 },
        { kind: "message", message: "look around", lane: "cron", priority: 2 },
      ]);
      expect(await api.schedules.get(made.id)).toMatchObject({ last_status: "succeeded" });
    });

    test("can be changed, and null takes it back", async () => {
      const opened = await open();
      const { api } = opened;
      const given = {
        payload: 1,
        lane: "team",
        priority: 0,
        metadata: { a: 1 },
        callback_url: "https://example.com/x",
        max_runs: 3,
        until: MIDNIGHT + 3_600,
        pause_after_failures: 2,
      };
      const { id } = await create(opened, given);
      expect(await api.schedules.get(id)).toMatchObject(given);
      expect(
        await api.schedules.update(id, { message: "hello", until: "2026-01-01T02:00:00Z" }),
      ).toMatchObject({
        message: "hello",
        until: MIDNIGHT + 7_200,
      });
      const taken = await api.schedules.update(id, {
        lane: null,
        priority: null,
        metadata: null,
        callback_url: null,
        max_runs: null,
        until: null,
        pause_after_failures: null,
      });
      for (const field of Object.keys(given)) expect(taken).not.toHaveProperty(field);
      expect(taken).toMatchObject({ message: "hello", status: "active" });
    });

    test.each([
      [{ message: null }, "message"],
      [{ instruction: "x", payload: 1, message: null }, "payload"],
      [{ max_runs: 0 }, "max_runs"],
      [{ until: MIDNIGHT }, "until"],
      [{ until: "soon" }, "until"],
      [{ pause_after_failures: -1 }, "pause_after_failures"],
      [{ priority: "soon" }, "priority"],
      [{ metadata: [] }, "metadata"],
      [{ callback_url: "http://127.0.0.1:1/x" }, "callback_url"],
      [{ callback_url: "http://10.0.0.1/x" }, "callback_url"],
      [{ callback_url: "file:///etc/passwd" }, "callback_url"],
    ])("is refused where it cannot be: %j", async (input, field) => {
      const opened = await open();
      const { api } = opened;
      const refused = { code: "invalid_field", details: { field } };
      const { id } = await create(opened);
      const before = await api.schedules.get(id);
      expect(await errorOf(create(opened, { message: "x", ...input } as never))).toMatchObject(refused);
      expect(await errorOf(api.schedules.update(id, input as never))).toMatchObject(refused);
      expect(await api.schedules.get(id)).toEqual(before);
      expect((await api.schedules.list()).count).toBe(1);
    });

    test("calls back at the end of each run", async () => {
      const bodies: Task[] = [];
      const url = await serve((_request, response, body) => {
        bodies.push(JSON.parse(body));
        response.end();
      });
      const opened = await open({ options: { webhooks: { allow: ["127.0.0.1"] } } });
      const { id } = await create(opened, { callback_url: `${url}/done` });
      await opened.api.schedules.run(id);
      await until(() => bodies.length === 1, "the callback");
      expect(bodies[0]).toMatchObject({ scheduleId: id, state: "done", result: "look around" });
    });

    test("is known by the run's request_id to its agent and its task", async () => {
      const seen: unknown[] = [];
      const opened = await open();
      const { api, rota } = opened;
      rota.agent("a", ({ requestId }) => void seen.push(requestId));
      const { id } = await create(opened, { agent: "a" });
      await api.schedules.run(id);
      await settle();
      const [run] = (await api.schedules.runs(id)).runs;
      expect(seen).toEqual([run?.request_id]);
      expect((await api.tasks.get(run?.queue_task_id ?? "")).requestId).toBe(run?.request_id);
    });
  });

  describe("a schedule with an end", () => {
    test("fires max_runs times, and is completed", async () => {
      const opened = await open();
      const { api, clock } = opened;
      const { id } = await create(opened, { max_runs: 2 });
      await clock.advance(MINUTE);
      expect(await api.schedules.get(id)).toMatchObject({ status: "active", run_count: 1, max_runs: 2 });
      await clock.advance(10 * MINUTE);
      const completed = { status: "completed", enabled: false, run_count: 2, next_fire_at: 0 };
      expect(await api.schedules.get(id)).toMatchObject(completed);
      expect((await api.schedules.runs(id)).count).toBe(2);
      expect(await errorOf(api.schedules.run(id))).toMatchObject({
        code: "conflict",
        message: expect.stringContaining("has reached `max_runs` (2)"),
      });
      expect(await api.schedules.run(id, { mode: "due" })).toMatchObject({ ran: false, reason: "not-due" });
      expect(await errorOf(api.schedules.update(id, { status: "active" }))).toMatchObject({
        code: "conflict",
      });
      expect(await api.schedules.update(id, { max_runs: 3 })).toMatchObject({ status: "active" });
      await clock.advance(10 * MINUTE);
      expect(await api.schedules.get(id)).toMatchObject({ status: "completed", run_count: 3 });
    });

    test("counts runs out of turn", async () => {
      const opened = await open();
      const { api, clock } = opened;
      const { id } = await create(opened, { max_runs: 2 });
      await api.schedules.run(id);
      await settle();
      await clock.advance(10 * MINUTE);
      expect(await api.schedules.get(id)).toMatchObject({ status: "completed", run_count: 2 });
      expect((await api.schedules.runs(id)).count).toBe(2);
    });

    test("fires up to its until, that moment included, and is completed", async () => {
      const opened = await open();
      const { api, clock } = opened;
      const { id } = await create(opened, { until: MIDNIGHT + 120 });
      await clock.advance(10 * MINUTE);
      expect(await api.schedules.get(id)).toMatchObject({
        status: "completed",
        run_count: 2,
        next_fire_at: 0,
      });
      expect((await api.schedules.runs(id)).runs.map(({ due_at }) => due_at - MIDNIGHT)).toEqual([120, 60]);
    });

    test("lets what has fired come to its end", async () => {
      const held = new Held();
      const opened = await open({ options: { executors: { message: held.executor } } });
      const { api, clock } = opened;
      const { id } = await create(opened, { max_runs: 2, overlap: "queue" });
      await clock.advance(5 * MINUTE);
      expect(await api.schedules.get(id)).toMatchObject({ status: "completed", run_count: 2 });
      expect((await api.schedules.status()).running).toBe(2);
      await until(async () => {
        await held.end();
        return (await api.schedules.status()).running === 0;
      }, "both to end");
      expect((await api.schedules.runs(id)).runs.map(({ status }) => status)).toEqual([
        "succeeded",
        "succeeded",
      ]);
      expect(await api.schedules.get(id)).toMatchObject({ status: "completed", last_status: "succeeded" });
    });
  });

  describe("a schedule whose runs fail", () => {
    const failing = { retry: { max_retries: 0 }, agent: "a" } as const;

    test("is paused after so many in a row, has a reason and a notification, and goes on when it is resumed", async () => {
      const opened = await open();
      const { api, clock, rota } = opened;
      let fails = true;
      rota.agent("a", () => {
        if (fails) throw new Error("no luck");
        return "fine";
      });
      const { id } = await create(opened, { ...failing, pause_after_failures: 2 });
      const seen: unknown[] = [];
      const paused = (async () => {
        for await (const notification of api.notifications()) {
          if (notification.kind !== "schedule.paused") continue;
          seen.push(notification);
          return;
        }
      })();
      await settle();
      await clock.advance(MINUTE);
      expect(await api.schedules.get(id)).toMatchObject({ status: "active", consecutive_failures: 1 });
      await clock.advance(10 * MINUTE);
      expect(await api.schedules.get(id)).toMatchObject({
        status: "paused",
        run_count: 2,
        next_fire_at: 0,
        consecutive_failures: 2,
        paused_reason: "failed runs in a row: 2",
        last_error: "no luck",
      });
      await paused;
      expect(seen).toMatchObject([{ task_id: id, reason: "failed runs in a row: 2" }]);
      fails = false;
      expect(await api.schedules.update(id, { status: "active" })).toMatchObject({
        status: "active",
        consecutive_failures: 0,
        paused_reason: null,
      });
      await clock.advance(MINUTE);
      expect(await api.schedules.get(id)).toMatchObject({
        status: "active",
        run_count: 3,
        last_status: "succeeded",
      });
    });

    test("stays active with 0, or with nothing said, and counts", async () => {
      const opened = await open();
      const { api, clock, rota } = opened;
      rota.agent("a", () => {
        throw new Error("no luck");
      });
      const never = await create(opened, { ...failing, pause_after_failures: 0 });
      const silent = await create(opened, failing);
      await clock.advance(3 * MINUTE);
      for (const { id } of [never, silent])
        expect(await api.schedules.get(id)).toMatchObject({ status: "active", consecutive_failures: 3 });
    });

    test("that a caller pauses has no reason", async () => {
      const opened = await open();
      const { id } = await create(opened);
      expect(await opened.api.schedules.update(id, { status: "paused" })).toMatchObject({
        status: "paused",
        paused_reason: null,
      });
    });

    test("because its agent is gone says so", async () => {
      const opened = await open();
      const { api, clock } = opened;
      await api.agents.create({ id: "gone" });
      const { id } = await create(opened, { agent: "gone" });
      await api.agents.delete("gone");
      await clock.advance(MINUTE);
      expect(await api.schedules.get(id)).toMatchObject({
        status: "paused",
        paused_reason: 'agent "gone" not found',
        consecutive_failures: 1,
      });
    });
  });
}
