import { describe, expect, test } from "vitest";
import type { InsertedTask, NewTask, SubmitBounds } from "../../storage.ts";
import { create, fire, read, running } from "../schedules/schedule-world.ts";
import { customSpec, newTask, type OpenWorld, only, ROOMY, TENANT, type World } from "../world.ts";

const MINUTE = 60_000;
const NONE = {
  tenant: TENANT,
  owner: "key_1",
  maxSubmitsPerHour: null,
  maxOpenTasks: null,
  descendants: null,
};

/** How many tasks a bounded caller may submit. */
export function describeSubmitBounds(open: OpenWorld): void {
  describe("bounds of a caller", () => {
    function submit(
      { storage }: World,
      bounds: Partial<SubmitBounds>,
      ...tasks: Partial<NewTask>[]
    ): Promise<InsertedTask[]> {
      return storage.tasks.insert({
        tasks: tasks.map(newTask),
        limits: ROOMY,
        bounds: { ...NONE, ...bounds },
      });
    }

    async function total({ storage }: World): Promise<number> {
      return (await storage.tasks.list({ tenant: TENANT, limit: 1_000 })).tasks.length;
    }

    function below(root: string): Pick<NewTask, "spec"> {
      return { spec: { ...customSpec({}), within: { taskId: root, rootTaskId: root, depth: 0 } } };
    }

    test("count open tasks: one more is refused, and stored once another has ended", async () => {
      const world = await open();
      const bounds = { maxOpenTasks: 2 };
      await submit(world, bounds, { id: "a" }, { id: "b" });
      await expect(submit(world, bounds, {})).rejects.toMatchObject({
        code: "quota_exceeded",
        details: { bound: "maxOpenTasks", max: 2, used: 2 },
      });
      expect(await total(world)).toBe(2);
      expect((await world.events()).filter(({ type }) => type === "task.created")).toHaveLength(2);
      // A running task is open.
      const claimed = only(await world.claim());
      await expect(submit(world, bounds, {})).rejects.toMatchObject({ code: "quota_exceeded" });
      await world.finish(claimed, { to: "done", result: null });
      await submit(world, bounds, {});
      await expect(submit(world, bounds, {})).rejects.toMatchObject({ code: "quota_exceeded" });
    });

    test("count each owner of each tenant by itself, and only what was submitted under them", async () => {
      const world = await open();
      await world.submit({}, {}, {});
      const bounds = { maxOpenTasks: 1, maxSubmitsPerHour: 1 };
      await submit(world, bounds, {});
      await submit(world, { ...bounds, owner: "key_2" }, {});
      await submit(world, { ...bounds, tenant: "zeta" }, { tenant: "zeta" });
      await expect(submit(world, bounds, {})).rejects.toMatchObject({ code: "quota_exceeded" });
    });

    test("store all tasks of a call or none", async () => {
      const world = await open();
      const bounds = { maxOpenTasks: 2 };
      await expect(submit(world, bounds, {}, {}, {})).rejects.toMatchObject({
        details: { max: 2, used: 0 },
      });
      expect(await total(world)).toBe(0);
      await submit(world, bounds, {}, {});
      expect(await total(world)).toBe(2);
    });

    test("count submits of the last sixty minutes, and say when there is room", async () => {
      const world = await open();
      world.clock.step(MINUTE - (world.clock.now() % MINUTE));
      const bounds = { maxSubmitsPerHour: 3 };
      await submit(world, bounds, {});
      world.clock.step(10 * MINUTE);
      await submit(world, bounds, {}, {});
      await expect(submit(world, bounds, {})).rejects.toMatchObject({
        code: "quota_exceeded",
        details: { bound: "maxSubmitsPerHour", max: 3, used: 3 },
        retryAfterSec: 50 * 60,
      });
      await expect(submit(world, bounds, {}, {})).rejects.toMatchObject({ retryAfterSec: 60 * 60 });
      world.clock.step(50 * MINUTE - 1);
      await expect(submit(world, bounds, {})).rejects.toMatchObject({ retryAfterSec: 1 });
      world.clock.step(1);
      await submit(world, bounds, {});
      await expect(submit(world, bounds, {})).rejects.toMatchObject({ code: "quota_exceeded" });
    });

    test("count the tasks below a root, of all owners", async () => {
      const world = await open();
      await world.submit({ id: "root" }, { id: "one", ...below("root") });
      const bounds = { descendants: { root: "root", max: 2 } };
      await submit(world, bounds, { id: "two", ...below("root") });
      await expect(submit(world, bounds, below("root"))).rejects.toMatchObject({
        details: { bound: "maxDescendants", max: 2, used: 2 },
      });
      await submit(world, { descendants: { root: "other", max: 2 } }, below("other"));
    });

    test("say what counts against them, before and after the hour", async () => {
      const world = await open();
      const { storage, clock } = world;
      clock.step(MINUTE - (clock.now() % MINUTE));
      const bounds = {
        ...{ ...NONE, maxSubmitsPerHour: 5, maxOpenTasks: 5 },
        descendants: { root: "root", max: 5 },
      };
      const none = { minutes: [], open: 0, descendants: 0 };
      expect(await storage.tasks.boundsUsed(bounds)).toEqual(none);
      const minute = clock.now() / MINUTE;
      await submit(world, bounds, { id: "a", ...below("root") }, { id: "b" });
      clock.step(MINUTE);
      await submit(world, bounds, { id: "c" });
      await storage.tasks.cancel({ tenant: TENANT, ids: ["b"], error: null });
      expect(await storage.tasks.boundsUsed(bounds)).toEqual({
        minutes: [
          { minute, submits: 2 },
          { minute: minute + 1, submits: 1 },
        ],
        open: 2,
        descendants: 1,
      });
      expect(await storage.tasks.boundsUsed(NONE)).toEqual(none);
      expect(await storage.tasks.boundsUsed({ ...bounds, owner: "key_2" })).toEqual({
        ...none,
        descendants: 1,
      });
      expect(await storage.tasks.boundsUsed({ ...bounds, tenant: "zeta" })).toEqual(none);
      clock.step(59 * MINUTE);
      expect((await storage.tasks.boundsUsed(bounds)).minutes).toEqual([{ minute: minute + 1, submits: 1 }]);
    });

    test("count a repeated request once, and never refuse it", async () => {
      const world = await open();
      const bounds = { maxOpenTasks: 1, maxSubmitsPerHour: 1 };
      const idempotency = { key: "k", hash: "h" };
      const [first] = await submit(world, bounds, { id: "a", idempotency });
      const [again] = await submit(world, bounds, { id: "b", idempotency });
      expect([again?.id, again?.repeats]).toEqual([first?.id, "same"]);
      // The same insert, whose answer was lost.
      const [lost] = await submit(world, bounds, { id: "a" });
      expect(lost?.id).toBe("a");
      await expect(submit(world, bounds, {})).rejects.toMatchObject({ details: { used: 1 } });
    });

    test("do not count a task that admission rejects", async () => {
      const world = await open();
      await world.submit({});
      const insert = (maxPerAgent: number) =>
        world.storage.tasks.insert({
          tasks: [newTask()],
          limits: { ...ROOMY, maxPerAgent },
          bounds: { ...NONE, maxOpenTasks: 1, maxSubmitsPerHour: 1 },
        });
      expect((await insert(1))[0]?.state).toBe("rejected");
      expect((await insert(9))[0]?.state).toBe("queued");
      await expect(insert(9)).rejects.toMatchObject({ code: "quota_exceeded" });
    });

    test("count a task that is retried, and leave it ended if it is one too many", async () => {
      const world = await open();
      const retry = (id: string, bounds: Partial<SubmitBounds>) =>
        world.storage.tasks.retry({ tenant: TENANT, id, bounds: { ...NONE, ...bounds } });
      const bounds = { maxOpenTasks: 2 };
      await submit(world, bounds, { id: "a" }, { id: "b" });
      await world.storage.tasks.cancel({ tenant: TENANT, ids: ["a", "b"], error: null });
      await submit(world, bounds, {});
      expect(await retry("a", bounds)).toMatchObject({ found: true, was: null });
      const before = await world.events();
      await expect(retry("b", bounds)).rejects.toMatchObject({
        details: { bound: "maxOpenTasks", max: 2, used: 2 },
      });
      expect((await world.task("b")).state).toBe("cancelled");
      expect(await world.events()).toEqual(before);
      // What ended while it was counted, and was not looked at since, is counted once.
      await world.storage.tasks.cancel({ tenant: TENANT, ids: ["a"], error: null });
      await retry("a", bounds);
      await expect(submit(world, bounds, {})).rejects.toMatchObject({ details: { used: 2 } });
      const hourly = { maxSubmitsPerHour: 1, owner: "key_2" };
      await retry("b", hourly);
      await world.storage.tasks.cancel({ tenant: TENANT, ids: ["b"], error: null });
      await expect(retry("b", hourly)).rejects.toMatchObject({ details: { bound: "maxSubmitsPerHour" } });
    });

    test("count a run that a caller asks for, and store nothing of one that is too many", async () => {
      const world = await open();
      const bounds = { ...NONE, maxOpenTasks: 1, maxSubmitsPerHour: 2 };
      const schedule = await create(world, { definition: { overlap: "allow" } });
      const run = () =>
        fire(world, schedule, { runs: [running(world, schedule, { forced: true })] }, { bounds });
      expect((await run()).runs).toHaveLength(1);
      const before = await read(world, schedule);
      await expect(run()).rejects.toMatchObject({ details: { bound: "maxOpenTasks", max: 1, used: 1 } });
      expect(await read(world, schedule)).toEqual(before);
      expect(await total(world)).toBe(1);
      // A run at its due time is not counted.
      await fire(world, schedule, { runs: [running(world, schedule)] });
      expect(await total(world)).toBe(2);
    });

    test("hold for messages, but not for those that join another one", async () => {
      const world = await open();
      const send = (debounceMs: number) =>
        world.storage.sessions.send({
          task: newTask({
            origin: "message",
            session: { key: "s", maxConcurrent: 1 },
            spec: { ...customSpec(null), work: { kind: "message", message: "hi" } },
          }),
          mode: null,
          maxConcurrent: null,
          defaults: { mode: "queue", cap: 10, drop: "old", debounceMs },
          bounds: { ...NONE, maxOpenTasks: 1 },
        });
      await send(1_000);
      expect(await send(1_000)).toMatchObject({ merged: true });
      await expect(send(0)).rejects.toMatchObject({ code: "quota_exceeded" });
      expect(await total(world)).toBe(1);
    });

    test("hold however many submit at once", async () => {
      const world = await open();
      const made = await Promise.allSettled(
        Array.from({ length: 12 }, () => submit(world, { maxOpenTasks: 5 }, {})),
      );
      expect(made.filter(({ status }) => status === "fulfilled")).toHaveLength(5);
      expect(await total(world)).toBe(5);
    });

    test("still count an old task that is open after what has expired was deleted", async () => {
      const world = await open();
      const bounds = { maxOpenTasks: 2, maxSubmitsPerHour: 2 };
      await submit(world, bounds, { id: "ends" }, { id: "stays" });
      await world.storage.tasks.cancel({ tenant: TENANT, ids: ["ends"], error: null });
      world.clock.step(100 * MINUTE);
      while ((await world.storage.tasks.prune({ retentionMs: 1, rejectedMax: 0, limit: 100 })).more);
      await submit(world, bounds, {});
      await expect(submit(world, bounds, {})).rejects.toMatchObject({
        details: { bound: "maxOpenTasks", max: 2, used: 2 },
      });
    });
  });

  describe("a tree of tasks", () => {
    test("is read oldest first, slice by slice, with parents and states", async () => {
      const world = await open();
      const at = (taskId: string, depth: number) => ({
        spec: { ...customSpec({}), within: { taskId, rootTaskId: "root", depth } },
      });
      await world.submit({ id: "root" });
      await world.claim();
      await world.submit({ id: "a", ...at("root", 0) }, { id: "x" });
      await world.submit({ id: "b", ...at("a", 1) }, { id: "c", ...at("root", 0) });
      await world.claim();
      await world.storage.tasks.cancel({ tenant: TENANT, ids: ["c"], error: null });
      const read = (after: number, limit: number) =>
        world.storage.tasks.tree({ tenant: TENANT, root: "root", after, limit });
      const all = await read(0, 10);
      expect(all.map(({ id, parent, state }) => [id, parent, state])).toEqual([
        ["a", "root", "running"],
        ["b", "a", "queued"],
        ["c", "root", "cancelled"],
      ]);
      expect(await read(0, 1)).toEqual(all.slice(0, 1));
      expect(await read(all[0]?.seq ?? 0, 10)).toEqual(all.slice(1));
      expect(await world.storage.tasks.tree({ tenant: "zeta", root: "root", after: 0, limit: 1 })).toEqual(
        [],
      );
    });
  });

  describe("a task that an attempt holds", () => {
    test("is found by its token, until the attempt has ended", async () => {
      const world = await open();
      await world.submit({ id: "a" });
      const claimed = only(await world.claim());
      const { token } = claimed;
      const held = (params: object = {}) =>
        world.storage.tasks.held({ tenant: TENANT, id: "a", token, ...params });
      expect(await held()).toEqual(await world.task("a"));
      expect(await held({ token: token + 1 })).toBeNull();
      expect(await held({ tenant: "zeta" })).toBeNull();
      expect(await held({ id: "b" })).toBeNull();
      await world.finish(claimed, { to: "queued", error: "again" });
      expect(await held()).toBeNull();
      const next = only(await world.claim());
      expect(await held({ token: next.token })).toMatchObject({ id: "a", state: "running" });
      await world.storage.tasks.cancel({ tenant: TENANT, ids: ["a"], error: null });
      expect(await held({ token: next.token })).toBeNull();
    });
  });

  describe("a shared secret", () => {
    test("is what the first caller stored under its name", async () => {
      const { storage } = await open();
      const secret = (name: string, fresh: string) => storage.sharedSecret({ name, fresh });
      const [one, other] = await Promise.all([secret("a", "01"), secret("a", "02")]);
      expect(one).toBe(other);
      expect(await secret("a", "03")).toBe(one);
      expect(await secret("b", "04")).toBe("04");
    });
  });
}
