import { describe, expect, test } from "vitest";
import type { EventPageFilter, EventsOptions } from "../../src/interface/rota.ts";
import type { RotaEvent } from "../../src/model/event.ts";
import { until } from "../../src/testing/signals.ts";
import { errorOf, type Open } from "./opened.ts";

/** Reads this many events, then ends. */
async function take(events: AsyncIterable<RotaEvent>, count: number): Promise<RotaEvent[]> {
  const taken: RotaEvent[] = [];
  for await (const event of events) if (taken.push(event) === count) break;
  return taken;
}

export function describeEvents(open: Open): void {
  describe("events", () => {
    test("report what happens from now on, in order", async () => {
      const { api, rota } = await open();
      rota.agent("a", async (_task, { progress }) => {
        progress({ at: "half" });
        await new Promise((resolve) => setImmediate(resolve));
        return { n: 1 };
      });
      await api.tasks.wait((await api.tasks.submit({ message: "before" })).taskId);
      const events = api.events();
      const { taskId } = await api.tasks.submit({ agentId: "a", payload: 1 });
      const seen = await take(events, 4);
      expect(seen.map((event) => [event.type, event.taskId])).toEqual([
        ["task.created", taskId],
        ["task.started", taskId],
        ["task.progress", taskId],
        ["task.completed", taskId],
      ]);
      expect(seen[2]).toMatchObject({ progress: { at: "half" } });
      expect(seen[3]).toMatchObject({ result: { n: 1 }, agentId: "a", lane: "tasks", state: "done" });
    });

    test("go on after the one that was seen last, and are the same for all readers", async () => {
      const { api, rota } = await open({ start: false });
      for (let n = 0; n < 5; n++) await api.tasks.submit({ payload: n });
      const all = await take(api.events({ after: 0 }), 5);
      expect(all).toEqual(await take(rota.events({ after: 0 }), 5));
      const [, second] = all;
      expect(await take(api.events({ after: second?.seq as number }), 3)).toEqual(all.slice(2));
    });

    test("go on live once they have caught up", async () => {
      const { api } = await open({ start: false });
      await api.tasks.submit({ payload: 1 });
      const events = api.events({ after: 0 });
      expect((await events.next()).value?.seq).toBe(1);
      const next = events.next();
      await api.tasks.submit({ payload: 2 });
      expect((await next).value?.seq).toBe(2);
      await events.return?.();
    });

    test("that have happened are read page by page, newest or oldest first", async () => {
      const { api } = await open({ start: false });
      const { taskId } = await api.tasks.submit({ message: "x" });
      for (let n = 0; n < 4; n++) await api.tasks.submit({ payload: n });
      await api.tasks.cancel(taskId);
      const all = await take(api.events({ after: 0 }), 6);
      expect(await api.eventPage()).toEqual({ events: all.toReversed(), count: 6, next: null });
      const newest = await api.eventPage({ limit: 2 });
      expect(newest).toEqual({ events: [all[5], all[4]], count: 2, next: 5 });
      expect(await api.eventPage({ before: 5, limit: 2 })).toMatchObject({
        events: [{ seq: 4 }, { seq: 3 }],
      });
      const oldest = await api.eventPage({ after: 0, limit: 5 });
      expect(oldest).toEqual({ events: all.slice(0, 5), count: 5, next: 5 });
      expect(await api.eventPage({ after: 5 })).toEqual({ events: [all[5]], count: 1, next: null });
      expect(await api.eventPage({ taskId })).toMatchObject({
        events: [{ type: "task.cancelled" }, { type: "task.created" }],
        next: null,
      });
      expect(await api.eventPage({ type: "task.cancelled" })).toMatchObject({ count: 1 });
      for (const taskId of ["tsk_nobody", "no such id"]) {
        expect(await api.eventPage({ taskId: taskId })).toEqual({ events: [], count: 0, next: null });
      }
    });

    test.each([
      [{ limit: 0 }, "limit"],
      [{ limit: 1_001 }, "limit"],
      [{ after: -1 }, "after"],
      [{ before: 0 }, "before"],
      [{ type: "task.done" }, "type"],
    ])("are refused a page like %j", async (filter, field) => {
      const { api } = await open({ start: false });
      expect(await errorOf(api.eventPage(filter as EventPageFilter))).toMatchObject({
        code: "invalid_field",
        details: { field },
      });
    });

    test.each<[EventsOptions, number[]]>([
      [{ agentId: "a" }, [1, 3, 4]],
      [{ agentId: "b" }, [2, 5]],
    ])("are only those asked for with %j", async (filter, seqs) => {
      const { api } = await open({ start: false });
      for (const agentId of ["a", "b", "a", "a", "b"]) await api.tasks.submit({ agentId, payload: 1 });
      const seen = await take(api.events({ ...filter, after: 0 }), seqs.length);
      expect(seen.map(({ seq }) => seq)).toEqual(seqs);
    });

    test("are only those of one batch when asked for", async () => {
      const { api } = await open({ start: false });
      await api.tasks.submit({ payload: 1 });
      const { batchId, taskIds } = await api.tasks.submitBatch({ tasks: [{ payload: 2 }, { payload: 3 }] });
      const seen = await take(api.events({ batchId, after: 0 }), 2);
      expect(seen.map((event) => [event.taskId, event.batchId])).toEqual(taskIds.map((id) => [id, batchId]));
    });

    test("say when they have begun, and from where to go on", async () => {
      const { api } = await open({ start: false });
      await api.tasks.submit({ payload: 1 });
      const events = api.events({ agentId: "nobody" });
      await events.ready;
      expect(events.position).toBe(1);
      await events.return?.();
    });

    test("report events that are no longer there", async () => {
      const { api, clock } = await open({ options: { scheduler: { resultTTLSec: 1 } } });
      const submitAndWait = async () => api.tasks.wait((await api.tasks.submit({ payload: 1 })).taskId);
      await submitAndWait();
      await clock.advance(3_600_000);
      await submitAndWait();
      const gaps: { after: number; oldest: number }[] = [];
      const [first] = await take(api.events({ after: 1, onGap: (gap) => gaps.push(gap) }), 1);
      expect(gaps).toEqual([{ after: 1, oldest: first?.seq }]);
    });

    test("end with their signal, and when they are left", async () => {
      const { api, clock } = await open({ start: false });
      const controller = new AbortController();
      const ended = api.events({ signal: controller.signal });
      const left = api.events();
      const nexts = [ended.next(), left.next()];
      await clock.advance(0);
      controller.abort();
      await left.return?.();
      for (const next of nexts) expect(await next).toEqual({ done: true, value: undefined });
      const late = api.events({ signal: controller.signal });
      expect((await late.next()).done).toBe(true);
    });

    test.each([-1, 1.5, "1"])("refuse to begin after %j", async (after) => {
      const { api } = await open({ start: false });
      expect(await errorOf((async () => api.events({ after: after as number }))())).toMatchObject({
        code: "invalid_field",
        details: { field: "after" },
      });
    });
  });

  describe("onEvent", () => {
    test("calls a handler in order, whatever it throws, until it is undone", async () => {
      const { api } = await open({ start: false });
      const [seen, stillSeen]: number[][] = [[], []];
      const undo = api.onEvent(({ seq }) => {
        seen?.push(seq);
        throw new Error("a fault of the handler");
      });
      const undoOther = api.onEvent(async ({ seq }) => {
        stillSeen?.push(seq);
      });
      await api.tasks.submit({ payload: 1 });
      await api.tasks.submit({ payload: 2 });
      await until(() => seen?.length === 2 && stillSeen?.length === 2, "two events for both");
      undo();
      await api.tasks.submit({ payload: 3 });
      await until(() => stillSeen?.length === 3, "the third");
      expect([seen, stillSeen]).toEqual([
        [1, 2],
        [1, 2, 3],
      ]);
      undoOther();
    });
  });
}
