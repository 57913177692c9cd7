import { describe, expect, test } from "vitest";
import type { DoctorProgress } from "../../src/interface/doctor.ts";
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
        ["audit", true, []],
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
