import { describe, expect, test } from "vitest";
import type { RotaEvent } from "../../src/model/event.ts";
import type { Task } from "../../src/model/task.ts";
import { Latch, until } from "../../src/testing/signals.ts";
import { errorOf, type Open } from "./opened.ts";

const ONE_SLOT = { scheduler: { workerCount: 1 } };

export function describePreemption(open: Open): void {
  describe("a critical task without a free slot", () => {
    test("makes a preemptible one give way, which is run again first of all and counts no retry", async () => {
      const { api, rota } = await open({ options: ONE_SLOT });
      const finish = new Latch();
      const started: unknown[] = [];
      const reasons: unknown[] = [];
      rota.agent("a", async ({ payload }, { signal }) => {
        started.push(payload);
        signal.addEventListener("abort", () => reasons.push(String(signal.reason)));
        if (payload === "urgent" || started.filter((each) => each === payload).length > 1) {
          await finish.opened;
          return;
        }
        await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
      });
      const submit = async (payload: string, more: object = {}) =>
        (await api.tasks.submit({ agentId: "a", payload, ...more })).taskId;
      const seen: RotaEvent[] = [];
      const undo = api.onEvent((event) => void seen.push(event));
      const gaveWay = await submit("long", { preemptible: true, priority: "low" });
      await until(async () => (await api.tasks.get(gaveWay)).state === "running");
      const later = await submit("later", { priority: "high" });
      const urgent = await submit("urgent", { priority: "critical" });
      await until(async () => (await api.tasks.get(urgent)).state === "running");

      const error = `pre-empted by the critical task ${urgent}`;
      const waiting = await api.tasks.get(gaveWay);
      expect(waiting).toMatchObject({
        state: "queued",
        preemptible: true,
        retryCount: 0,
        attempts: [{ number: 1, outcome: "preempted", error }],
      });
      expect(await api.tasks.explain(gaveWay)).toMatchObject({
        state: "queued",
        since: endOf(waiting),
        position: 1,
        reasons: [
          {
            code: "preempted",
            message: "a critical task took its slot; it goes first of its agent's non-critical tasks",
            since: endOf(waiting),
          },
          { code: "node_full" },
        ],
      });
      expect(await api.tasks.explain(later)).toMatchObject({ position: 2, ahead: [gaveWay] });

      finish.open();
      expect(await api.tasks.wait(gaveWay)).toMatchObject({
        state: "done",
        retryCount: 0,
        attempts: [{ outcome: "preempted" }, { outcome: "done" }],
      });
      expect(started.slice(0, 3)).toEqual(["long", "urgent", "long"]);
      expect(reasons).toHaveLength(1);
      await until(() => seen.some(({ type, taskId }) => type === "task.completed" && taskId === gaveWay));
      undo();
      expect(seen.filter(({ taskId }) => taskId === gaveWay)).toMatchObject([
        { type: "task.created" },
        { type: "task.started", attempt: 1 },
        { type: "task.preempted", attempt: 1, error, state: "queued" },
        { type: "task.started", attempt: 2 },
        { type: "task.completed" },
      ]);
    });

    test("waits when no running task is pre-emptible", async () => {
      const { api, rota } = await open({ options: ONE_SLOT });
      const finish = new Latch();
      rota.agent("a", () => finish.opened);
      const first = await api.tasks.submit({ agentId: "a", payload: 1 });
      await until(async () => (await api.tasks.get(first.taskId)).state === "running");
      const urgent = await api.tasks.submit({ agentId: "a", payload: 2, priority: "critical" });
      expect(await api.tasks.explain(urgent.taskId)).toMatchObject({
        state: "queued",
        position: 1,
        reasons: [{ code: "node_full" }],
      });
      expect(await api.tasks.get(first.taskId)).toMatchObject({ state: "running", attempts: [{}] });
      finish.open();
      expect(await api.tasks.wait(urgent.taskId)).toMatchObject({ state: "done" });
    });

    test("finds `preemptible` refused that is neither true nor false", async () => {
      const { api } = await open({ start: false });
      expect(await errorOf(api.tasks.submit({ payload: 1, preemptible: 1 as never }))).toMatchObject({
        code: "invalid_field",
        details: { field: "preemptible" },
      });
    });
  });
}

function endOf({ attempts }: Task): string | null | undefined {
  return attempts.at(-1)?.endedAt;
}
