import { describe, expect, test } from "vitest";
import type { DoctorProgress } from "../../src/interface/doctor.ts";
import type { StatsSeriesQuery } from "../../src/model/stats-series.ts";
import type { Open } from "./opened.ts";

export function describeStatus(open: Open): void {
  describe("stats", () => {
    test("tell of the queue, of what was done and of the limits", async () => {
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
    test("is told, also while it drains", async () => {
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
        ["config", true, []],
      ]);
      expect(report.ok).toBe(true);
      expect(await api.schedules.get(scheduled_task.id)).toEqual(scheduled_task);
      rota.configFault(new Error("no such option"));
      expect(await api.doctor()).toMatchObject({
        ok: false,
        checks: { 5: { name: "config", ok: false, findings: ["no such option"] } },
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
