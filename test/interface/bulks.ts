import { describe, expect, test } from "vitest";
import type { BulkInput } from "../../src/interface/bulks.ts";
import type { RotaApi } from "../../src/interface/rota.ts";
import type { RotaEvent } from "../../src/model/event.ts";
import { until } from "../../src/testing/signals.ts";
import type { Open } from "./opened.ts";

const ROOMY = { options: { scheduler: { maxQueueSize: 10_000, maxPerAgent: 10_000 } } };

export function describeBulks(open: Open): void {
  async function submit({ tasks }: RotaApi, count: number, more: object = {}): Promise<string[]> {
    const later = new Date(Date.UTC(2100, 0)).toISOString();
    const ids: string[] = [];
    for (let index = 0; index < count; index += 1)
      ids.push((await tasks.submit({ payload: index, runAt: later, ...more })).taskId);
    return ids;
  }

  async function ended({ bulks }: RotaApi, input: BulkInput) {
    const { bulkId } = await bulks.start(input);
    await until(async () => (await bulks.get(bulkId)).state !== "running", "the bulk action to end");
    return bulks.get(bulkId);
  }

  describe("an action on many tasks", () => {
    test("says first what it would cover, and changes nothing by that", async () => {
      const { api } = await open(ROOMY);
      const ids = await submit(api, 7, { agentId: "a" });
      await submit(api, 2, { agentId: "b" });
      const filter = { agentId: "a", state: "delayed" } as const;
      const preview = await api.bulks.preview({ action: "cancel", filter });
      expect(preview).toMatchObject({ matched: 7, capped: false });
      expect(preview.sample).toHaveLength(5);
      expect(preview.sample[0]).toEqual({
        taskId: ids.at(-1),
        agentId: "a",
        lane: "tasks",
        state: "delayed",
        createdAt: expect.any(String),
      });
      expect(await api.bulks.preview({ action: "cancel", filter, limit: 3 })).toMatchObject({
        matched: 3,
        capped: true,
      });
      expect((await api.bulks.preview({ action: "cancel", filter, limit: 3 })).sample).toHaveLength(3);
      const named = [...ids.slice(0, 2), "tsk_unknown", ids[0] as string];
      expect(await api.bulks.preview({ action: "cancel", ids: named })).toMatchObject({ matched: 2 });
      expect(await api.bulks.preview({ action: "retry", ids: named })).toMatchObject({ matched: 0 });
      expect((await api.tasks.counts()).counts).toEqual({ delayed: 9 });
    });

    test("counts towards its limit only those that are named and fit, and says that there are more", async () => {
      const { api } = await open(ROOMY);
      const [first, ...others] = await submit(api, 4);
      await api.tasks.cancel(first as string);
      const input = { action: "cancel", ids: [first as string, "tsk_unknown", ...others] } as const;
      expect(await api.bulks.preview({ ...input, limit: 3 })).toMatchObject({ matched: 3, capped: false });
      expect(await api.bulks.preview({ ...input, limit: 2 })).toMatchObject({ matched: 2, capped: true });
      expect(await ended(api, { ...input, limit: 2 })).toMatchObject({ matched: 2, done: 2, skipped: 0 });
      expect((await api.tasks.counts()).counts).toEqual({ cancelled: 3, delayed: 1 });
    });

    test("cancels, retries and deletes all that fit, in slices, with an event for each", async () => {
      const { api } = await open(ROOMY);
      const seen: RotaEvent[] = [];
      api.onEvent((event) => void seen.push(event));
      const ids = await submit(api, 1_201, { agentId: "a" });
      const [other] = await submit(api, 1, { agentId: "b" });
      const filter = { agentId: "a" } as const;
      expect(await ended(api, { action: "cancel", filter })).toEqual({
        bulkId: expect.stringMatching(/^blk_/),
        action: "cancel",
        filter,
        matched: 1_201,
        done: 1_201,
        failed: 0,
        skipped: 0,
        state: "done",
        by: null,
      });
      const cancelled = () =>
        seen.filter(({ type }) => type === "task.cancelled").map(({ taskId }) => taskId);
      await until(() => cancelled().length >= 1_201, "all events");
      expect(new Set(cancelled())).toEqual(new Set(ids));
      expect(cancelled()).toHaveLength(1_201);
      expect((await api.tasks.counts()).counts).toEqual({ cancelled: 1_201, delayed: 1 });

      expect(await ended(api, { action: "retry", filter, limit: 700 })).toMatchObject({
        matched: 700,
        done: 700,
      });
      expect((await api.tasks.counts()).counts).toEqual({ cancelled: 501, delayed: 701 });
      expect(await ended(api, { action: "delete", filter })).toMatchObject({ matched: 501, done: 501 });
      expect((await api.tasks.counts()).counts).toEqual({ delayed: 701 });

      const named = { action: "cancel", ids: [other as string, "tsk_unknown"] } as const;
      expect(await ended(api, named)).toMatchObject({ filter: null, matched: 1, done: 1, failed: 0 });
    });

    test("skips what cannot be retried, as a single retry would be refused, and brings dependants back in order", async () => {
      const { api, clock } = await open(ROOMY);
      const [parent] = await submit(api, 1);
      const [child] = await submit(api, 1, { dependsOn: [parent] });
      const deadline = new Date(clock.now() + 5_000).toISOString();
      const { taskId } = await api.tasks.submit({ payload: 1, dependsOn: [parent as string], deadline });
      expect(
        await ended(api, { action: "cancel", filter: { state: ["delayed", "waiting_dependency"] } }),
      ).toMatchObject({
        done: 3,
        skipped: 0,
      });
      await clock.advance(10_000);
      expect(await ended(api, { action: "retry", filter: { state: "cancelled" } })).toMatchObject({
        matched: 3,
        done: 2,
        skipped: 1,
      });
      expect((await api.tasks.get(child as string)).state).toBe("waiting_dependency");
      expect((await api.tasks.get(taskId)).state).toBe("cancelled");
    });

    test("runs as often as ten times at once for a tenant, and can be aborted", async () => {
      const { api } = await open({ ...ROOMY, start: false });
      await submit(api, 3);
      const input = { action: "cancel", filter: { state: "delayed" } } as const;
      const started = [];
      for (let index = 0; index < 10; index += 1) started.push(await api.bulks.start(input));
      await expect(api.bulks.start(input)).rejects.toMatchObject({ code: "conflict" });
      const bulkId = started[0]?.bulkId ?? "";
      expect(await api.bulks.get(bulkId)).toMatchObject({ state: "running", done: 0 });
      expect(await api.bulks.abort(bulkId)).toMatchObject({ state: "aborted", done: 0 });
      await api.bulks.start(input);
    });

    test("covers nothing that came after it was asked for", async () => {
      const { api, rota } = await open({ ...ROOMY, start: false });
      await submit(api, 2);
      const { bulkId } = await api.bulks.start({ action: "cancel", filter: { state: "delayed" } });
      const [later] = await submit(api, 1);
      await rota.start();
      await until(async () => (await api.bulks.get(bulkId)).state === "done", "it to end");
      expect(await api.bulks.get(bulkId)).toMatchObject({ done: 2 });
      expect((await api.tasks.get(later as string)).state).toBe("delayed");
    });

    test.each([
      [{}, "action"],
      [{ action: "pause", filter: { state: "queued" } }, "action"],
      [{ action: "cancel" }, "filter"],
      [{ action: "cancel", filter: {} }, "filter"],
      [{ action: "cancel", filter: { state: null } }, "filter"],
      [{ action: "cancel", filter: { state: "queued" }, ids: ["tsk_1"] }, "filter"],
      [{ action: "cancel", filter: { state: "quueud" } }, "filter.state"],
      [{ action: "cancel", filter: { state: "done" } }, "filter.state"],
      [{ action: "cancel", filter: { state: "queued", limit: 1 } }, "filter.limit"],
      [{ action: "cancel", ids: [] }, "ids"],
      [{ action: "cancel", ids: Array(1_001).fill("tsk_1") }, "ids"],
      [{ action: "cancel", ids: ["tsk_1", "a b"] }, "ids[1]"],
      [{ action: "cancel", filter: { state: "queued" }, limit: 100_001 }, "limit"],
    ])("is refused as %j", async (input, field) => {
      const { api } = await open();
      const refused = { code: "invalid_field", details: { field } };
      await expect(api.bulks.preview(input as unknown as BulkInput)).rejects.toMatchObject(refused);
      await expect(api.bulks.start(input as unknown as BulkInput)).rejects.toMatchObject(refused);
    });

    test("is not found by an id that none has", async () => {
      const { api } = await open();
      for (const id of ["blk_unknown", "a/b", ""]) {
        await expect(api.bulks.get(id)).rejects.toMatchObject({ code: "not_found" });
        await expect(api.bulks.abort(id)).rejects.toMatchObject({ code: "not_found" });
      }
    });
  });
}
