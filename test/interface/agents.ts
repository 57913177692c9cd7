import { describe, expect, test } from "vitest";
import { errorOf, type Open } from "./opened.ts";

export function describeAgents(open: Open): void {
  describe("agents", () => {
    test("are made, shown, changed and deleted", async () => {
      const { api } = await open();
      const input = { id: "team/a:1", executor: { type: "echo" }, lane: "subagent", maxInflight: 2 } as const;
      const created = { ...input, source: "stored" };
      expect(await api.agents.create(input)).toEqual(created);
      expect(await api.agents.get(input.id)).toEqual(created);
      expect(await api.agents.update(input.id, { lane: null, maxInflight: 3 })).toEqual({
        id: input.id,
        executor: { type: "echo" },
        maxInflight: 3,
        source: "stored",
      });
      expect(await api.agents.delete(input.id)).toEqual({ deleted: true });
      expect(await errorOf(api.agents.get(input.id))).toMatchObject({ code: "not_found" });
    });

    test("have ids of any script, which are the same however they are typed", async () => {
      const { api } = await open();
      const typed = "Ru\u0308ckfragen 研究/%";
      const id = typed.normalize("NFC");
      expect(await api.agents.create({ id: typed, executor: { type: "echo" } })).toMatchObject({ id });
      expect(await errorOf(api.agents.create({ id }))).toMatchObject({ code: "conflict" });
      expect((await api.agents.get(typed)).id).toBe(id);
      const { taskId } = await api.tasks.submit({ agentId: typed, message: "hello" });
      expect(await api.tasks.wait(taskId)).toMatchObject({ agentId: id, state: "done", result: "hello" });
      const { tasks } = await api.tasks.list({ agentId: typed });
      expect(tasks.map((task) => task.taskId)).toEqual([taskId]);
      const made = await api.schedules.create({ schedule: "every day", message: "x", agent: typed });
      expect(made.scheduled_task.agent_id).toBe(id);
      expect((await api.schedules.list({ agent: typed })).count).toBe(1);
      expect(await api.metrics()).toContain(`agent="${id}"`);
      expect(await api.agents.delete(typed)).toEqual({ deleted: true });
    });

    test("are listed by their ids, with where they come from", async () => {
      const { api } = await open({ options: { agents: { zoe: { lane: "main" } } } });
      await api.agents.create({ id: "adam" });
      const { agents, count } = await api.agents.list();
      expect(agents.map(({ id, source }) => [id, source])).toEqual([
        ["adam", "stored"],
        ["index", "built-in"],
        ["zoe", "config"],
      ]);
      expect(count).toBe(3);
    });

    test("are listed in pages, by id", async () => {
      const { api } = await open();
      for (const id of ["zoe", "a b", "émile"]) await api.agents.create({ id });
      const first = await api.agents.list({ limit: 3 });
      expect(first.agents.map(({ id }) => id)).toEqual(["a b", "index", "zoe"]);
      expect(first).toMatchObject({ count: 3, nextCursor: expect.any(String) });
      const cursor = first.nextCursor ?? "";
      expect(await api.agents.list({ limit: 3, cursor })).toMatchObject({
        agents: [{ id: "émile" }],
        count: 1,
        nextCursor: null,
      });
      expect(await errorOf(api.agents.list({ limit: 1_001 }))).toMatchObject({ code: "invalid_field" });
    });

    test("do the work of their tasks at once", async () => {
      const { api } = await open();
      await api.agents.create({ id: "parrot", executor: { type: "echo" }, lane: "subagent" });
      const { taskId } = await api.tasks.submit({ agentId: "parrot", message: "hello" });
      expect(await api.tasks.wait(taskId)).toMatchObject({
        state: "done",
        result: "hello",
        lane: "subagent",
      });
    });

    test("are refused with a sentence when they cannot be", async () => {
      const { api } = await open({ options: { agents: { configured: { lane: "main" } } } });
      await api.agents.create({ id: "a" });
      const { agents } = api;
      for (const [call, code] of [
        [() => agents.create({ id: "two\nlines" }), "invalid_field"],
        [() => agents.create({ id: "b", maxInflight: 0 }), "invalid_field"],
        [() => agents.create({ id: "b", lanes: "x" } as never), "invalid_field"],
        [() => agents.create({ id: "a" }), "conflict"],
        [() => agents.update("configured", { lane: "main" }), "conflict"],
        [() => agents.delete("configured"), "conflict"],
        [() => agents.update("nobody", { lane: "main" }), "not_found"],
        [() => agents.delete("nobody"), "not_found"],
      ] as const) {
        expect(await errorOf(call())).toMatchObject({ name: "RotaError", code });
      }
      expect((await api.agents.list()).count).toBe(3);
    });
  });
}
