import { describe, expect, test } from "vitest";
import { settle } from "../../src/testing/manual-clock.ts";
import { Held } from "../support/held.ts";
import { errorOf, type Open } from "./opened.ts";

export function describeLanes(open: Open): void {
  describe("lanes", () => {
    test("are listed with what they may run, what runs and what waits", async () => {
      const held = new Held();
      const { api, rota, clock } = await open({
        options: {
          lanes: { crawl: { concurrency: 1, total: 3 } },
          executors: { message: held.executor, custom: held.executor },
        },
      });
      const empty = { total: null, running: 0, waiting: 0, oldestWaitMs: null };
      expect(await api.lanes.list()).toEqual({
        lanes: [
          { ...empty, name: "tasks", concurrency: 4, total: 20 },
          { ...empty, name: "main", concurrency: 30 },
          { ...empty, name: "subagent", concurrency: 50 },
          { ...empty, name: "team", concurrency: 100 },
          { ...empty, name: "cron", concurrency: 30 },
          { ...empty, name: "crawl", concurrency: 1, total: 3 },
        ],
      });
      await api.tasks.submit({ lane: "crawl", message: "runs" });
      await settle();
      await api.tasks.submit({ lane: "crawl", message: "waits" });
      await clock.advance(2_500);
      await api.tasks.submit({ lane: "crawl", message: "waits less" });
      await api.tasks.submit({ lane: "team", message: "later", runAt: "2100-01-01T00:00:00Z" });
      const found = Object.fromEntries((await api.lanes.list()).lanes.map((lane) => [lane.name, lane]));
      expect(found["crawl"]).toMatchObject({ running: 1, waiting: 2, oldestWaitMs: 2_500 });
      expect(found["team"]).toMatchObject({ running: 0, waiting: 1, oldestWaitMs: null });
      expect(await api.lanes.list()).toEqual(await rota.lanes.list());
    });

    test("are made by saying how much of them runs at once, and changed so", async () => {
      const held = new Held();
      const { api } = await open({ options: { executors: { message: held.executor } } });
      const before = await api.tasks.submit({ lane: "fresh", message: "x" });
      expect((await api.tasks.get(before.taskId)).lane).toBe("main");
      await held.startedAfterAWhile();
      await held.end();
      expect(await api.lanes.put("fresh", { concurrency: 1 })).toEqual({
        name: "fresh",
        concurrency: 1,
        total: null,
        running: 0,
        waiting: 0,
        oldestWaitMs: null,
      });
      for (let n = 0; n < 6; n++) {
        const { taskId } = await api.tasks.submit({ lane: "fresh", message: "x" });
        expect((await api.tasks.get(taskId)).lane).toBe("fresh");
      }
      expect(await held.startedAfterAWhile()).toBe(2);
      expect(await api.lanes.put("fresh", { concurrency: 3 })).toMatchObject({ concurrency: 3, waiting: 5 });
      expect(await held.startedAfterAWhile()).toBe(4);
      expect(await api.lanes.put("fresh", { concurrency: 9, total: 4 })).toMatchObject({ total: 4 });
      expect(await held.startedAfterAWhile()).toBe(5);
      await api.lanes.put("fresh", { concurrency: 9, total: null });
      expect(await held.startedAfterAWhile()).toBe(7);
    });

    test("that are always there can be changed, also to run nothing", async () => {
      const held = new Held();
      const { api } = await open({ options: { executors: { message: held.executor } } });
      expect(await api.lanes.put("main", { concurrency: 0 })).toMatchObject({ concurrency: 0, total: null });
      await api.tasks.submit({ message: "x" });
      expect(await held.startedAfterAWhile()).toBe(0);
      await api.lanes.put("main", { concurrency: 1 });
      expect(await held.startedAfterAWhile()).toBe(1);
      expect((await api.lanes.list()).lanes.map(({ name }) => name)).toEqual([
        "tasks",
        "main",
        "subagent",
        "team",
        "cron",
      ]);
    });

    test("that the configuration describes are changed there and nowhere else", async () => {
      const lanes = { cron: 30, crawl: { concurrency: 1, total: 3 } };
      const { api } = await open({ options: { lanes, scheduler: { workerCount: 3 } } });
      for (const name of ["cron", "crawl", "tasks"]) {
        expect(await errorOf(api.lanes.put(name, { concurrency: 9 })), name).toMatchObject({
          name: "RotaError",
          code: "conflict",
          message: expect.stringMatching(`^the lane "${name}" is .*configuration: change it there`),
        });
      }
      const found = (await api.lanes.list()).lanes;
      expect(found.find(({ name }) => name === "crawl")).toMatchObject({ concurrency: 1, total: 3 });
    });

    test("are refused with a sentence when they cannot be", async () => {
      const { api } = await open();
      const { lanes } = api;
      const before = await lanes.list();
      for (const [call, field] of [
        [() => lanes.put("two words", { concurrency: 1 }), "name"],
        [() => lanes.put("a", { concurrency: -1 }), "concurrency"],
        [() => lanes.put("a", {} as never), "concurrency"],
        [() => lanes.put("a", { concurrency: 1, total: 0 }), "total"],
        [() => lanes.put("a", { concurrency: 1, perAgent: 2 } as never), "perAgent"],
      ] as const) {
        expect(await errorOf(call())).toMatchObject({ code: "invalid_field", details: { field } });
      }
      expect(await errorOf(lanes.put("a", undefined as never))).toMatchObject({ code: "invalid_field" });
      expect(await lanes.list()).toEqual(before);
    });

    test("that are cleared lose what waits, and keep what runs and what comes", async () => {
      const held = new Held();
      const { api } = await open({ options: { executors: { message: held.executor } } });
      await api.lanes.put("crawl", { concurrency: 1 });
      const submit = async (input: object = {}) =>
        (await api.tasks.submit({ lane: "crawl", message: "x", ...input })).taskId;
      const runs = await submit();
      await settle();
      const waits = [await submit(), await submit({ runAt: "2100-01-01T00:00:00Z" })];
      waits.push(await submit({ dependsOn: [waits[1]] }));
      const elsewhere = await submit({ lane: "main" });
      expect(await api.lanes.clear("crawl")).toEqual({ cancelled: 3 });
      for (const id of waits) {
        expect(await api.tasks.get(id)).toMatchObject({ state: "cancelled", error: "lane_cleared" });
      }
      await settle();
      expect((await api.tasks.get(runs)).state).toBe("running");
      expect((await api.tasks.get(elsewhere)).state).toBe("running");
      const later = await submit();
      await held.end(2);
      expect((await api.tasks.get(later)).state).toBe("running");
      expect(await api.lanes.clear("crawl")).toEqual({ cancelled: 0 });
      expect((await api.stats()).metrics.tasksCancelled).toBe(3);
    });

    test("that are unknown cannot be cleared", async () => {
      const { api } = await open();
      for (const name of ["nowhere", "two words", "x".repeat(500)]) {
        expect(await errorOf(api.lanes.clear(name))).toMatchObject({
          code: "not_found",
          message: "lane not found",
        });
      }
    });

    test("stay as they are while it drains, and can be looked at and cleared", async () => {
      const { api, rota } = await open();
      await rota.lanes.put("crawl", { concurrency: 0 });
      await api.tasks.submit({ lane: "crawl", message: "waits" });
      await rota.drain();
      expect(await errorOf(api.lanes.put("crawl", { concurrency: 2 }))).toMatchObject({ code: "draining" });
      expect((await api.lanes.list()).lanes.at(-1)).toMatchObject({ name: "crawl", waiting: 1 });
      expect(await api.lanes.clear("crawl")).toEqual({ cancelled: 1 });
    });
  });
}
