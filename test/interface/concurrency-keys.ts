import { describe, expect, test } from "vitest";
import { Latch, until } from "../../src/testing/signals.ts";
import { errorOf, type Open } from "./opened.ts";

export function describeConcurrencyKeys(open: Open): void {
  describe("tasks with the same concurrency key", () => {
    test("run one at a time, whatever their agents and lanes, and say who has the key", async () => {
      const { api, rota } = await open();
      const latches: Latch[] = [];
      const work = async () => {
        const latch = new Latch();
        latches.push(latch);
        await latch.opened;
      };
      rota.agent("a", work);
      rota.agent("b", work);
      const key = { concurrencyKey: "the site" };
      const first = await api.tasks.submit({ agentId: "a", payload: 1, ...key });
      await until(() => latches.length === 1);
      const second = await api.tasks.submit({ agentId: "b", message: "hello", ...key });
      const free = await api.tasks.submit({ agentId: "b", payload: 2 });
      expect(second).toMatchObject({ state: "queued", position: 1 });
      await until(() => latches.length === 2);
      expect(await api.tasks.get(free.taskId)).toMatchObject({ state: "running" });
      expect(await api.tasks.get(second.taskId)).toMatchObject({ state: "queued", ...key });
      expect((await api.tasks.explain(second.taskId)).reasons).toMatchObject([
        {
          code: "concurrency_key",
          message: `concurrency key "the site" busy with ${first.taskId}`,
          taskId: first.taskId,
        },
      ]);
      latches[0]?.open();
      await until(() => latches.length === 3);
      for (const latch of latches) latch.open();
      expect(await api.tasks.wait(second.taskId)).toMatchObject({ state: "done", ...key });
    });

    test("are actions in the same tab, of a batch as well, unless they say otherwise", async () => {
      const { api, rota } = await open();
      const running = new Set<string>();
      let most = 0;
      rota.agent("a", async ({ taskId }) => {
        running.add(taskId);
        most = Math.max(most, running.size);
        await new Promise((resolve) => setImmediate(resolve));
        running.delete(taskId);
      });
      const click = { agentId: "a", action: "click", tabId: "t1" };
      const { taskIds } = await api.tasks.submitBatch({ tasks: [click, click, click] });
      for (const id of taskIds) expect((await api.tasks.wait(id)).state).toBe("done");
      expect(most).toBe(1);
      expect(await api.tasks.get(taskIds[0] ?? "")).toMatchObject({ concurrencyKey: "tab:t1" });
      const { taskId } = await api.tasks.submit({ ...click, concurrencyKey: "" });
      expect(await api.tasks.get(taskId)).not.toHaveProperty("concurrencyKey");
    });

    test("have a key of 1 to 256 characters, and anything else is refused", async () => {
      const { api } = await open();
      for (const concurrencyKey of ["k".repeat(257), "a\u0000b"]) {
        expect(await errorOf(api.tasks.submit({ payload: 1, concurrencyKey }))).toMatchObject({
          code: "invalid_field",
          details: { field: "concurrencyKey" },
        });
      }
    });
  });
}
