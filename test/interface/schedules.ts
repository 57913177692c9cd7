import { describe, expect, test } from "vitest";
import type { NewScheduleInput, ScheduledTask, UpcomingFilter } from "../../src/interface/schedules.ts";
import { ACCEPTED_FORMS } from "../../src/schedules/accepted-forms.ts";
import { localZone } from "../../src/schedules/zone.ts";
import { settle } from "../../src/testing/manual-clock.ts";
import { Held } from "../support/held.ts";
import { errorOf, type Open, type Opened } from "./opened.ts";

const SECOND = 1_000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;

/** The clock of the tests begins here. */
const MIDNIGHT = Date.UTC(2026, 0, 1) / SECOND;
/** Also the number of an hour. */
const HOUR_SEC = 3_600;

const LEAST: NewScheduleInput = { schedule: "every hour", message: "look around", tz: "UTC" };

async function create({ api }: Opened, input: Partial<NewScheduleInput> = {}): Promise<ScheduledTask> {
  return (await api.schedules.create({ ...LEAST, ...input })).scheduled_task;
}

export function describeSchedules(open: Open): void {
  describe("schedules", () => {
    test("count null as left out when they are made, and take a value back by it when they are changed", async () => {
      const opened = await open();
      const nulls = {
        agent: null,
        name: null,
        tz: null,
        conversation_id: null,
        session_key: null,
        enabled: null,
        delete_after_run: null,
        retry: null,
        overlap: null,
        catch_up: null,
        useful_for: null,
        timeout: null,
      } as unknown as Partial<NewScheduleInput>;
      const least = { schedule: LEAST.schedule, message: LEAST.message ?? "x" };
      const { api } = opened;
      const { id: _, ...plain } = (await api.schedules.create(least)).scheduled_task;
      const { id: __, ...made } = (await api.schedules.create({ ...least, ...nulls })).scheduled_task;
      expect(made).toEqual(plain);

      const set = await create(opened, {
        name: "mine",
        tz: "Asia/Tokyo",
        overlap: "queue",
        catch_up: "all",
        retry: { max_retries: 9 },
        timeout: 5_000,
      });
      const back = await api.schedules.update(set.id, nulls);
      const shown = ({ name, tz, overlap, catch_up, retry, timeout, agent_id }: ScheduledTask) => ({
        name,
        tz,
        overlap,
        catch_up,
        retry,
        timeout,
        agent_id,
      });
      expect(shown(back)).toEqual(shown({ ...plain, id: 0 }));
      const again = await api.schedules.update(set.id, { retry: { max_retries: 9, base_delay_ms: 5 } });
      const half = { max_retries: null } as unknown as NonNullable<NewScheduleInput["retry"]>;
      expect(again.retry).toMatchObject({ max_retries: 9, base_delay_ms: 5 });
      expect((await api.schedules.update(set.id, { retry: half })).retry).toMatchObject({
        max_retries: 3,
        base_delay_ms: 5,
      });
    });

    test("are made of when and what, and filled in", async () => {
      const { api } = await open();
      const { scheduled_task, normalized } = await api.schedules.create({
        schedule: "EVERY monday at 9am",
        message: "sum up the week",
      });
      expect(normalized).toBe("every Mon at 09:00");
      expect(scheduled_task).toEqual({
        id: 1,
        name: null,
        agent_id: "index",
        conversation_id: null,
        session_key: null,
        message: "sum up the week",
        schedule_phrase: "EVERY monday at 9am",
        schedule_kind: "recurring",
        fire_at: 0,
        recur_json: JSON.stringify({ kind: "weeks", every: 1, on: ["Mon"], at: "09:00", tz: localZone() }),
        tz: localZone(),
        next_fire_at: expect.any(Number),
        status: "active",
        enabled: true,
        delete_after_run: false,
        retry: { max_retries: 3, base_delay_ms: 2_000, max_delay_ms: 30_000 },
        overlap: "skip",
        catch_up: "one",
        useful_for: null,
        timeout: null,
        created_by: { key_id: null, agent_id: null, via: expect.stringMatching(/^(library|http)$/) },
        created_at: MIDNIGHT,
        updated_at: MIDNIGHT,
        last_run_at: 0,
        last_run_id: 0,
        run_count: 0,
        last_status: null,
        last_error: null,
        consecutive_failures: 0,
        paused_reason: null,
      });
      expect(await api.schedules.get(1)).toEqual(scheduled_task);
      expect(await api.schedules.list()).toEqual({
        schedules: [scheduled_task],
        count: 1,
        next_cursor: null,
      });
    });

    test("are due once or again and again, by the clocks of their zone", async () => {
      const opened = await open();
      expect(await create(opened, { schedule: "on 2026-01-02 at 09:00", tz: "europe/berlin" })).toMatchObject(
        {
          schedule_kind: "once",
          recur_json: null,
          fire_at: MIDNIGHT + 32 * HOUR_SEC,
          next_fire_at: MIDNIGHT + 32 * HOUR_SEC,
          tz: "Europe/Berlin",
        },
      );
      const every = { kind: "every", everyMs: 90 * MINUTE } as const;
      expect(await create(opened, { schedule: every })).toMatchObject({
        schedule_phrase: "every 90 minutes",
        fire_at: 0,
        next_fire_at: MIDNIGHT + 1.5 * HOUR_SEC,
      });
      const cron = { kind: "cron", expr: "0 9 * * *", tz: "Asia/Tokyo" } as const;
      const { tz: _, ...message } = LEAST;
      const { scheduled_task } = await opened.api.schedules.create({ ...message, schedule: cron });
      expect(scheduled_task).toMatchObject({ schedule_phrase: "0 9 * * *", tz: "Asia/Tokyo" });
    });

    test("can begin paused", async () => {
      const opened = await open();
      const paused = { status: "paused", enabled: false, next_fire_at: 0 };
      expect(await create(opened, { enabled: false })).toMatchObject(paused);
      expect(await create(opened, { enabled: false, schedule: "in 1 hour" })).toMatchObject({
        ...paused,
        fire_at: MIDNIGHT + HOUR_SEC,
      });
    });

    test("take everything that can be said of them", async () => {
      const opened = await open();
      opened.rota.agent("research", async () => "found");
      const said = {
        name: "the deploy",
        conversation_id: "c-1",
        session_key: "user:42",
        delete_after_run: true,
        retry: { max_retries: 0, base_delay_ms: 10, max_delay_ms: 20 },
        overlap: "queue",
        catch_up: "none",
        useful_for: 90,
        timeout: 5_000,
      } as const;
      const made = await create(opened, { ...said, agent: "research", schedule: "in 1 hour" });
      expect(made).toMatchObject({ ...said, agent_id: "research" });
      const { api } = opened;
      expect(
        await api.schedules.update(made.id, {
          name: null,
          conversation_id: null,
          session_key: null,
          useful_for: null,
          timeout: null,
          delete_after_run: false,
          retry: { max_retries: 7 },
          agent: "index",
          message: "another",
        }),
      ).toEqual({
        ...made,
        name: null,
        conversation_id: null,
        session_key: null,
        useful_for: null,
        timeout: null,
        delete_after_run: false,
        retry: { max_retries: 7, base_delay_ms: 10, max_delay_ms: 20 },
        agent_id: "index",
        message: "another",
      });
    });

    test("need an agent that is listed", async () => {
      const opened = await open();
      const { api } = opened;
      for (const [agent, sentence] of [
        [
          "nobody",
          'agent "nobody" not found: create it first (`rota agents create`, `POST /v1/agents`, the configuration, or a worker), or leave `agent` out',
        ],
        ["indx", 'agent "indx" not found: did you mean "index"?'],
      ] as const) {
        const refused = { code: "not_found", message: sentence };
        expect(await errorOf(api.schedules.create({ ...LEAST, agent }))).toMatchObject(refused);
        const { id } = await create(opened);
        expect(await errorOf(api.schedules.update(id, { agent }))).toMatchObject(refused);
      }
      await api.agents.create({ id: "nobody" });
      expect(await create(opened, { agent: "nobody" })).toMatchObject({ agent_id: "nobody" });
    });

    test("come in pages that skip and double nothing, whatever is edited between them", async () => {
      const opened = await open();
      const { api, clock } = opened;
      await api.agents.create({ id: "nobody" });
      for (let n = 0; n < 7; n++) await create(opened, n === 3 ? { agent: "nobody" } : {});
      await clock.advance(SECOND);
      await api.schedules.update(2, { name: "changed" });
      const page = async (cursor?: string) => {
        const { schedules, next_cursor } = await api.schedules.list({
          limit: 2,
          ...(cursor === undefined ? {} : { cursor }),
        });
        return [schedules.map(({ id }) => id), next_cursor] as const;
      };
      const [first, second] = await page();
      expect(first).toEqual([2, 7]);
      await clock.advance(SECOND);
      for (const id of [7, 1]) await api.schedules.update(id, { name: "changed since" });
      const [next, third] = await page(second ?? "");
      const [rest, fourth] = await page(third ?? "");
      const [last, end] = await page(fourth ?? "");
      expect([next, rest, last, end]).toEqual([[6, 5], [4, 3], [1], null]);

      const [byId] = await page("start");
      expect(byId).toEqual([7, 6]);
      expect(await api.schedules.list({ agent: "nobody" })).toMatchObject({ count: 1, next_cursor: null });
      expect(await api.schedules.list({ agent: "somebody" })).toMatchObject({ count: 0, next_cursor: null });
      for (const [field, value] of Object.entries({ limit: 201, cursor: "1-" }))
        expect(await errorOf(api.schedules.list({ [field]: value }))).toMatchObject({
          code: "invalid_field",
          details: { field },
        });
    });

    test("are listed by what they are, the one that was changed last first", async () => {
      const opened = await open();
      const { api, clock } = opened;
      for (let n = 0; n < 3; n++) await create(opened);
      const ids = async (status?: ScheduledTask["status"]) => {
        const { schedules, count } = await api.schedules.list(status === undefined ? {} : { status });
        expect(count).toBe(schedules.length);
        return schedules.map(({ id }) => id);
      };
      expect(await ids()).toEqual([3, 2, 1]);
      await clock.advance(SECOND);
      await api.schedules.update(2, { status: "paused" });
      expect([await ids(), await ids("active"), await ids("paused"), await ids("failed")]).toEqual([
        [2, 3, 1],
        [3, 1],
        [2],
        [],
      ]);
    });

    test("are counted, with their runs and when the next is due", async () => {
      const held = new Held();
      const opened = await open({ options: { executors: { message: held.executor } } });
      const { api } = opened;
      expect(await api.schedules.status()).toEqual({ active: 0, paused: 0, running: 0, next_fire_at: 0 });
      await create(opened);
      await create(opened, { schedule: "in 1 minute" });
      await create(opened, { enabled: false });
      await api.schedules.run(1);
      expect(await api.schedules.status()).toEqual({
        active: 2,
        paused: 1,
        running: 1,
        next_fire_at: MIDNIGHT + 60,
      });
    });

    test("show the next due times of all of them, earliest first, whatever bounds them", async () => {
      const opened = await open();
      const { api } = opened;
      expect(await api.schedules.upcoming()).toEqual({ moments: [], truncated: false });
      await create(opened, { schedule: "every 20 minutes", name: "often", max_runs: 2 });
      await create(opened, { schedule: "in 30 minutes" });
      await create(opened, { schedule: "every 15 minutes", until: MIDNIGHT + 20 * 60 });
      await create(opened, { enabled: false });
      const due = async (filter?: UpcomingFilter) => {
        const { moments, truncated } = await api.schedules.upcoming(filter);
        return { due: moments.map(({ schedule_id: id, at }) => [id, (at - MIDNIGHT) / 60]), truncated };
      };
      const all = [
        [3, 15],
        [1, 20],
        [2, 30],
        [1, 40],
      ];
      expect(await due()).toEqual({ due: all, truncated: false });
      expect(await due({ limit: 2 })).toEqual({ due: all.slice(0, 2), truncated: true });
      expect(await due({ limit: 4 })).toEqual({ due: all, truncated: false });
      expect(await due({ per_schedule: 1 })).toEqual({ due: all.slice(0, 3), truncated: false });
      expect(await due({ per_schedule: 1, limit: 2 })).toEqual({ due: all.slice(0, 2), truncated: true });
      const from = MIDNIGHT + 25 * 60;
      expect(await due({ from, to: new Date((MIDNIGHT + 30 * 60) * 1_000) })).toEqual({
        due: [[2, 30]],
        truncated: false,
      });
      // The run at 20 minutes counts, although it lies before the range.
      expect(await due({ from })).toEqual({ due: all.slice(2), truncated: false });
      const [often] = (await api.schedules.upcoming({ from: MIDNIGHT + 16 * 60, limit: 1 })).moments;
      expect(often).toEqual({
        schedule_id: 1,
        name: "often",
        agent: "index",
        at: MIDNIGHT + 20 * 60,
        zone: expect.any(String),
      });
    });

    test.each([
      [{ limit: 0 }, "limit"],
      [{ limit: 2_001 }, "limit"],
      [{ per_schedule: 0 }, "per_schedule"],
      [{ from: "tomorrow" }, "from"],
      [{ from: MIDNIGHT + 60, to: MIDNIGHT }, "to"],
    ])("refuse a range of due times like %j", async (filter, field) => {
      const { api } = await open();
      await expect(api.schedules.upcoming(filter as UpcomingFilter)).rejects.toMatchObject({
        code: "invalid_field",
        details: { field },
      });
    });

    test("keep their grid through a pause, and owe nothing for it", async () => {
      const opened = await open();
      const { api, clock } = opened;
      const { id } = await create(opened);
      await clock.advance(30 * MINUTE);
      expect(await api.schedules.update(id, { enabled: false })).toMatchObject({
        status: "paused",
        next_fire_at: 0,
        updated_at: MIDNIGHT + HOUR_SEC / 2,
      });
      await clock.advance(HOUR);
      expect(await api.schedules.update(id, { status: "active" })).toMatchObject({
        status: "active",
        enabled: true,
        next_fire_at: MIDNIGHT + 2 * HOUR_SEC,
      });
      await clock.advance(30 * MINUTE);
      await settle();
      expect((await api.schedules.runs(id)).runs).toMatchObject([
        { due_at: MIDNIGHT + 2 * HOUR_SEC, moments: 1, status: "succeeded" },
      ]);
    });

    test("with a new time count from the edit; other edits leave what is due alone", async () => {
      const opened = await open();
      const { api, clock } = opened;
      const { id } = await create(opened);
      await clock.advance(30 * MINUTE);
      expect(await api.schedules.update(id, { message: "another", enabled: true })).toMatchObject({
        message: "another",
        next_fire_at: MIDNIGHT + HOUR_SEC,
      });
      expect(await api.schedules.update(id, { schedule: "every hour" })).toMatchObject({
        next_fire_at: MIDNIGHT + 1.5 * HOUR_SEC,
      });
      await api.schedules.update(id, { enabled: false });
      expect(await api.schedules.update(id, { schedule: "every 2 hours" })).toMatchObject({
        schedule_phrase: "every 2 hours",
        status: "paused",
        next_fire_at: 0,
      });
      expect(await api.schedules.update(id, { schedule: "in 1 minute", enabled: true })).toMatchObject({
        schedule_kind: "once",
        next_fire_at: MIDNIGHT + HOUR_SEC / 2 + 60,
      });
    });

    test("keep their zone with a new time, and their time in a new zone", async () => {
      const opened = await open();
      const { api } = opened;
      const daily = await create(opened, { schedule: "every day at 09:00", tz: "Asia/Tokyo" });
      expect(await api.schedules.update(daily.id, { schedule: "every day at 10:00" })).toMatchObject({
        tz: "Asia/Tokyo",
        next_fire_at: MIDNIGHT + HOUR_SEC,
      });
      expect(await api.schedules.update(daily.id, { tz: "UTC" })).toMatchObject({
        schedule_phrase: "every day at 10:00",
        next_fire_at: MIDNIGHT + 10 * HOUR_SEC,
      });
    });

    test("that are due once stay where they are in any zone", async () => {
      const opened = await open();
      const { api } = opened;
      for (const schedule of ["on 2026-01-01 at 01:00", "at 01:00", "in 1 hour"]) {
        const { id } = await create(opened, { schedule });
        expect(await api.schedules.update(id, { tz: "Asia/Tokyo" }), schedule).toMatchObject({
          tz: "Asia/Tokyo",
          fire_at: MIDNIGHT + HOUR_SEC,
          next_fire_at: MIDNIGHT + HOUR_SEC,
        });
      }
    });

    test("that are due once are completed by it, and begin again only with a new time", async () => {
      const opened = await open();
      const { api, clock } = opened;
      const { id } = await create(opened, { schedule: "in 1 minute" });
      await clock.advance(MINUTE);
      await settle();
      const completed = {
        status: "completed",
        enabled: false,
        next_fire_at: 0,
        run_count: 1,
        last_run_at: MIDNIGHT + 60,
        last_run_id: 1,
        last_status: "succeeded",
      };
      expect(await api.schedules.get(id)).toMatchObject(completed);
      expect(await errorOf(api.schedules.update(id, { enabled: true }))).toMatchObject({
        code: "conflict",
        message: `the due time of schedule ${id} has passed: give it a new \`schedule\`, or run it now`,
      });
      expect(await errorOf(api.schedules.update(id, { status: "paused" }))).toMatchObject({
        code: "conflict",
        message: `schedule ${id} is completed: only an active schedule can be paused`,
      });
      expect(await api.schedules.update(id, { name: "old" })).toMatchObject({ ...completed, name: "old" });
      expect(await api.schedules.update(id, { schedule: "in 1 minute" })).toMatchObject({
        status: "active",
        next_fire_at: MIDNIGHT + 120,
      });
      await clock.advance(MINUTE);
      await settle();
      expect(await api.schedules.get(id)).toMatchObject({ status: "completed", run_count: 2 });
    });

    test("that are due once and were paused then are due when they go on", async () => {
      const opened = await open();
      const { api, clock } = opened;
      const { id } = await create(opened, { schedule: "in 1 minute", enabled: false });
      const other = await create(opened, { schedule: "in 1 minute", enabled: false, useful_for: 60 });
      await clock.advance(HOUR);
      expect(await api.schedules.update(id, { enabled: true })).toMatchObject({ status: "active" });
      await api.schedules.update(other.id, { enabled: true });
      await clock.advance(SECOND);
      expect(await api.schedules.get(id)).toMatchObject({ status: "completed", run_count: 1 });
      expect(await api.schedules.get(other.id)).toMatchObject({
        status: "failed",
        run_count: 0,
        last_status: "missed",
        last_error: expect.stringContaining("60 s late"),
      });
    });

    test("that are due once and paused too late are over when their run ends", async () => {
      const held = new Held();
      const opened = await open({ options: { executors: { message: held.executor } } });
      const { api, clock } = opened;
      const { id } = await create(opened, { schedule: "in 1 minute" });
      const other = await create(opened, { schedule: "in 1 minute", delete_after_run: true });
      await clock.advance(MINUTE);
      for (const each of [id, other.id]) {
        expect(await api.schedules.update(each, { enabled: false })).toMatchObject({ status: "paused" });
      }
      await held.end(2);
      expect(await api.schedules.get(id)).toMatchObject({ status: "completed", last_status: "succeeded" });
      expect(await errorOf(api.schedules.get(other.id))).toMatchObject({ code: "not_found" });
    });

    test("that are due once and paused in time stay so, whatever is run out of turn", async () => {
      const opened = await open();
      const { api, clock } = opened;
      const { id } = await create(opened, {
        schedule: "in 1 minute",
        enabled: false,
        delete_after_run: true,
      });
      await api.schedules.run(id);
      await settle();
      expect(await api.schedules.get(id)).toMatchObject({ status: "paused", last_status: "succeeded" });
      await clock.advance(HOUR);
      expect(await api.schedules.get(id)).toMatchObject({ status: "paused", run_count: 1 });
    });

    test("can go after they have succeeded", async () => {
      const opened = await open();
      const { api, clock } = opened;
      const { id } = await create(opened, { schedule: "in 1 minute", delete_after_run: true });
      await clock.advance(MINUTE);
      await settle();
      expect(await errorOf(api.schedules.get(id))).toMatchObject({ code: "not_found" });
      expect((await api.runs.list()).runs).toEqual([]);
    });

    test("are deleted with their runs, and what those have not finished is cancelled", async () => {
      const held = new Held();
      const opened = await open({ options: { executors: { message: held.executor } } });
      const { api } = opened;
      const { id } = await create(opened);
      const { run_id: runId = 0 } = await api.schedules.run(id);
      expect(await held.startedAfterAWhile()).toBe(1);
      const { queue_task_id: taskId } = await api.runs.get(runId);
      expect(await api.schedules.delete(id)).toEqual({ deleted: true });
      expect(await api.tasks.get(taskId ?? "")).toMatchObject({
        state: "cancelled",
        error: "schedule deleted",
      });
      for (const call of [
        () => api.schedules.get(id),
        () => api.schedules.delete(id),
        () => api.schedules.runs(id),
        () => api.schedules.run(id),
        () => api.schedules.update(id, { name: "x" }),
        () => api.schedules.update(id, { agent: "nobody" }),
      ]) {
        expect(await errorOf(call())).toMatchObject({ code: "not_found", message: "schedule not found" });
      }
      expect(await errorOf(api.runs.get(runId))).toMatchObject({
        code: "not_found",
        message: "run not found",
      });
    });

    test("have numbers for ids, and nothing else", async () => {
      const opened = await open();
      const { api } = opened;
      await create(opened);
      for (const given of [0, -1, 1.5, Number.NaN, 2 ** 53, "1", "status", undefined, null]) {
        const id = given as number;
        for (const call of [
          () => api.schedules.get(id),
          () => api.schedules.delete(id),
          () => api.schedules.runs(id),
          () => api.schedules.run(id),
          () => api.schedules.update(id, { enabled: false }),
          () => api.runs.get(id),
        ]) {
          expect(await errorOf(call()), String(given)).toMatchObject({ code: "not_found" });
        }
      }
      expect((await api.schedules.list()).count).toBe(1);
    });

    test("are refused with the field that is wrong, and nothing is kept", async () => {
      const opened = await open();
      const { api } = opened;
      for (const [input, field, sentence] of [
        [undefined, "schedule", "a schedule takes an object"],
        [{ ...LEAST, message: "" }, "message", "not empty"],
        [{ ...LEAST, shedule: "x" }, "shedule", "did you mean `schedule`?"],
        [{ ...LEAST, schedule: { kind: "every", everyMs: 1 } }, "schedule.everyMs", "from 1000"],
        [{ ...LEAST, timeout: 600_001 }, "timeout", "from 1000 to 600000"],
        [{ ...LEAST, delete_after_run: true }, "delete_after_run", '"every hour" recurs'],
        [{ ...LEAST, retry: { max_retries: -1 } }, "retry.max_retries", "from 0 to 100"],
      ] as const) {
        const details = { field };
        expect(await errorOf(api.schedules.create(input as never))).toMatchObject({
          name: "RotaError",
          code: "invalid_field",
          message: expect.stringContaining(sentence),
          details,
        });
      }
      expect(await errorOf(api.schedules.create({ ...LEAST, schedule: "every mondy" }))).toMatchObject({
        details: { field: "schedule", accepted: ACCEPTED_FORMS.map(({ form }) => form) },
      });
      expect((await api.schedules.list()).count).toBe(0);

      const made = await create(opened);
      for (const [changes, field, sentence] of [
        [undefined, "schedule", "must be an object"],
        [{ status: "completed" }, "status", "must be active or paused"],
        [{ enabled: true, status: "paused" }, "enabled", "contradict each other"],
        [{ schedule: "yesterday" }, "schedule", "was not understood"],
        [{ schedule: "on 2020-01-01" }, "schedule", "that is in the past"],
        [{ delete_after_run: true }, "delete_after_run", "recurs"],
        [{ next_fire_at: 5 }, "next_fire_at", "unknown field"],
      ] as const) {
        expect(await errorOf(api.schedules.update(made.id, changes as never))).toMatchObject({
          code: "invalid_field",
          message: expect.stringContaining(sentence),
          details: { field },
        });
      }
      expect(await errorOf(api.schedules.run(made.id, { mode: "now" as never }))).toMatchObject({
        code: "invalid_field",
        details: { field: "mode" },
      });
      expect(await errorOf(api.schedules.list({ status: "gone" as never }))).toMatchObject({
        code: "invalid_field",
        message: expect.stringContaining("active, paused, completed or failed"),
      });
      expect(await api.schedules.update(made.id, {})).toEqual(made);
      expect(await api.schedules.list()).toEqual({ schedules: [made], count: 1, next_cursor: null });
    });

    test("can be looked at and deleted while it drains or is switched off, and nothing more", async () => {
      const draining = await open();
      await create(draining);
      await draining.rota.drain();
      const off = await open({ options: { scheduler: { enabled: false } } });
      for (const [{ api }, code] of [
        [draining, "draining"],
        [off, "scheduler_disabled"],
      ] as const) {
        for (const call of [
          () => api.schedules.create(LEAST),
          () => api.schedules.update(1, { enabled: false }),
          () => api.schedules.run(1),
        ]) {
          expect(await errorOf(call())).toMatchObject({ code });
        }
        await api.schedules.list();
        await api.schedules.status();
        await api.runs.list();
      }
      expect(await draining.api.schedules.get(1)).toMatchObject({ status: "active" });
      expect(await draining.api.schedules.delete(1)).toEqual({ deleted: true });
    });
  });
}
