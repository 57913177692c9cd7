import { describe, expect, test } from "vitest";
import type { DoctorProgress } from "../../src/interface/doctor.ts";
import type { StatsSeriesQuery } from "../../src/model/input/stats-series-input.ts";
import { settle } from "../../src/testing/manual-clock.ts";
import { Latch } from "../../src/testing/signals.ts";
import type { Open } from "./opened.ts";

export function describeStatus(open: Open): void {
  describe("stats", () => {
    test("show the queue, what was done and the limits", async () => {
      const { api, rota } = await open();
      await api.tasks.wait((await api.tasks.submit({ message: "x" })).taskId);
      await api.tasks.submit({ agentId: "a", payload: 1, runAt: "2100-01-01T00:00:00Z" });
      const stats = await api.stats();
      expect(stats).toEqual(await rota.stats());
      expect(stats).toMatchObject({
        metrics: { tasksSubmitted: 2, tasksCompleted: 1 },
        config: { strategy: "fair-fifo", maxQueueSize: 1000, workerCount: 4 },
      });
    });
  });

  describe("waiting", () => {
    test("says why work waits: every task once", async () => {
      const { api, rota } = await open({ options: { lanes: { crawl: { concurrency: 1 } } } });
      expect(await api.waiting()).toEqual({ reasons: [], total: 0 });
      const ending = new Latch();
      rota.agent("slow", () => ending.opened);
      for (let n = 0; n < 4; n += 1) await api.tasks.submit({ agentId: "slow", payload: n, lane: "crawl" });
      await api.tasks.submit({ payload: 1, runAt: "2100-01-01T00:00:00Z" });
      await settle();
      const { reasons, total } = await api.waiting();
      expect(reasons).toEqual([
        { code: "node_full", lane: "crawl", count: 3 },
        { code: "not_before", count: 1 },
      ]);
      expect(total).toBe(4);
      ending.open();
    });

    test("says that nothing was started", async () => {
      const { api } = await open({ start: false });
      for (let n = 0; n < 3; n += 1) await api.tasks.submit({ payload: n });
      expect(await api.waiting()).toEqual({ reasons: [{ code: "not_started", count: 3 }], total: 3 });
    });
  });

  describe("statsSeries", () => {
    test("has what happened, by lane and by agent, a few seconds later", async () => {
      const { api, clock } = await open();
      for (const id of ["one", "two"]) await api.agents.create({ id, executor: { type: "echo" } });
      await api.tasks.wait((await api.tasks.submit({ agentId: "one", message: "x" })).taskId);
      await api.tasks.wait((await api.tasks.submit({ agentId: "two", message: "x" })).taskId);
      await api.tasks.wait((await api.tasks.submit({ agentId: "two", message: "x" })).taskId);
      await clock.advance(5_000);
      const from = new Date(clock.now() - 60_000);
      const done = await api.statsSeries({ metrics: ["done", "runMs"], by: "agent", from });
      expect(done).toEqual({
        from: "2025-12-31T23:59:00.000Z",
        step: 60,
        series: [
          { key: "two", metric: "done", points: [0, 2] },
          { key: "two", metric: "runMs", points: [null, { p50: 0, p95: 0, max: 0 }] },
          { key: "one", metric: "done", points: [0, 1] },
          { key: "one", metric: "runMs", points: [null, { p50: 0, p95: 0, max: 0 }] },
        ],
      });
      const { series } = await api.statsSeries({ by: "lane", step: 86_400, metrics: ["submitted"] });
      expect(series.map(({ key, points }) => [key, points.length, points.at(-1)])).toEqual([["main", 60, 3]]);
    });

    test.each([
      [{ metrics: ["done", "cost"] }, "metrics"],
      [{ metrics: [] }, "metrics"],
      [{ by: "session" }, "by"],
      [{ step: 5 }, "step"],
      [{ from: "soon" }, "from"],
    ])("refuses %j and names the field", async (query, field) => {
      const { api } = await open({ start: false });
      await expect(api.statsSeries(query as StatsSeriesQuery)).rejects.toMatchObject({
        code: "invalid_field",
        details: { field },
      });
    });
  });

  describe("health", () => {
    test("is shown, also while it drains", async () => {
      const { api, rota } = await open();
      expect(await api.health()).toEqual({
        status: "ok",
        version: expect.stringMatching(/^\d+\.\d+\.\d+/),
        state: "running",
        startedAt: "2026-01-01T00:00:00.000Z",
        storage: "ok",
        config: { ok: true },
      });
      await rota.drain();
      expect(await api.health()).toMatchObject({ status: "ok", state: "drained" });
    });

    test("says that the scheduler is disabled", async () => {
      const { api } = await open({ options: { scheduler: { enabled: false } } });
      expect(await api.health()).toMatchObject({ status: "ok", scheduler: "disabled" });
    });
  });

  describe("nodes", () => {
    test("are listed with what they can run and run, and say that they drain", async () => {
      const { api, rota, clock } = await open({ options: { lanes: { crawl: { concurrency: 3 } } } });
      const ending = new Latch();
      rota.agent("slow", () => ending.opened);
      const { taskId } = await api.tasks.submit({ agentId: "slow", message: "x", lane: "crawl" });
      await settle();
      await clock.advance(20_000);
      const { nodes } = await api.nodes.list();
      const { version } = await api.health();
      expect(nodes).toEqual([
        {
          id: expect.any(String),
          version,
          startedAt: "2026-01-01T00:00:00.000Z",
          lastSeenAt: "2026-01-01T00:00:20.000Z",
          lanes: expect.arrayContaining([{ name: "crawl", slots: 3, running: 1 }]),
          state: "alive",
        },
      ]);
      const drained = rota.drain({ graceMs: 60_000 });
      await settle();
      expect((await api.nodes.list()).nodes).toEqual([
        { ...nodes[0], lanes: [{ name: "crawl", slots: 0, running: 1 }], state: "draining" },
      ]);
      ending.open();
      await drained;
      expect(await api.tasks.get(taskId)).toMatchObject({ state: "done" });
      expect(await api.nodes.list()).toEqual({ nodes: [] });
    });

    test("that run nothing are not listed", async () => {
      const { api } = await open({ start: false });
      expect(await api.nodes.list()).toEqual({ nodes: [] });
    });
  });

  describe("doctor", () => {
    test("looks at everything, says what is well, and changes nothing", async () => {
      const { api, rota } = await open();
      await api.tasks.submit({ message: "x" });
      const { scheduled_task } = await api.schedules.create({ schedule: "every hour", message: "look" });
      const report = await api.doctor();
      expect(report.checks.map(({ name, ok, findings }) => [name, ok, findings])).toEqual([
        ["storage", true, []],
        ["clock", true, []],
        ["counters", true, []],
        ["schedules", true, []],
        ["rollups", true, []],
        ["audit", true, []],
        ["workers", true, []],
        ["lanes", true, []],
        ["config", true, []],
      ]);
      expect(report.ok).toBe(true);
      expect(await api.schedules.get(scheduled_task.id)).toEqual(scheduled_task);
      rota.configFault(new Error("no such option"));
      expect(await api.doctor()).toMatchObject({
        ok: false,
        checks: { 8: { name: "config", ok: false, findings: ["no such option"] } },
      });
    });

    test("says how far it is, and stops when its caller leaves", async () => {
      const { api } = await open();
      await api.tasks.submit({ message: "x" });
      const seen: DoctorProgress[] = [];
      const report = await api.doctor({ onProgress: (progress) => seen.push(progress) });
      expect(report).toMatchObject({ ok: true });
      expect(seen[0]).toEqual({ check: "counters", done: expect.any(Number), total: expect.any(Number) });
      const leaving = new AbortController();
      const onProgress = () => leaving.abort(new Error("left"));
      await expect(api.doctor({ signal: leaving.signal, onProgress })).rejects.toThrow("left");
      expect(await api.doctor()).toMatchObject({ ok: true });
    });
  });

  describe("metrics", () => {
    test("are the text that Prometheus reads", async () => {
      const { api } = await open();
      await api.tasks.wait((await api.tasks.submit({ message: "x" })).taskId);
      const text = await api.metrics();
      expect(text).toMatch(/^# HELP rota_/m);
      expect(text).toMatch(/^rota_[a-z_]+(\{[^}]*\})? \d/m);
    });
  });
}
