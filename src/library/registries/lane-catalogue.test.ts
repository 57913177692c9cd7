import { describe, expect, test } from "vitest";
import { Held } from "../../../test/support/held.ts";
import { openTestRota, type TestRotaParams } from "../../../test/support/rota.ts";
import { asSharedStorage, away, openMemory } from "../../../test/support/storages.ts";
import type { Rota } from "../../interface/rota.ts";
import type { Storage } from "../../storage/storage.ts";
import { ManualClock, settle } from "../../testing/manual-clock.ts";

/** Nodes that share one storage. */
async function shared() {
  const clock = new ManualClock();
  const storage = asSharedStorage(await openMemory(clock));
  const open = (params: Omit<TestRotaParams, "clock"> = {}) => openTestRota({ clock, storage, ...params });
  return { clock, storage, open };
}

/** The same storage for a node that gets no signals of the others. */
function deaf(storage: Storage): Storage {
  return { ...storage, subscribe: () => () => {} };
}

async function laneOf(rota: Rota, name: string) {
  return (await rota.lanes.list()).lanes.find((lane) => lane.name === name);
}

async function laneOfTask(rota: Rota, input: object): Promise<string> {
  const { taskId } = await rota.tasks.submit({ message: "x", ...input });
  return (await rota.tasks.get(taskId)).lane;
}

describe("a lane that is configured on one node", () => {
  test("is served by all of them at once", async () => {
    const { open } = await shared();
    const [here, there] = [new Held(), new Held()];
    const one = await open({ options: { executors: { message: here.executor } } });
    const other = await open({ options: { executors: { message: there.executor } } });
    for (const { rota } of [one, other]) await rota.start();
    await one.rota.lanes.put("crawl", { concurrency: 2 });
    await one.rota.tasks.submitMany(Array(9).fill({ lane: "crawl", message: "x" }));
    await settle();
    expect([here.started, there.started]).toEqual([2, 2]);
    await other.rota.lanes.put("crawl", { concurrency: 3 });
    await settle();
    expect([here.started, there.started]).toEqual([3, 3]);
    await one.rota.lanes.put("crawl", { concurrency: 9, total: 7 });
    await settle();
    expect(here.started + there.started).toBe(7);
    expect(await laneOf(other.rota, "crawl")).toMatchObject({
      concurrency: 9,
      total: 7,
      running: 7,
      waiting: 2,
    });
    expect(other.log.lines).toContainEqual({
      level: "info",
      message: "applied the stored lanes",
      fields: { lanes: ["crawl"] },
    });
  });

  test("takes the tasks that name it on another node, even before that node has read it", async () => {
    const { storage, open } = await shared();
    const one = await open();
    const other = await open({ storage: deaf(storage) });
    await one.rota.lanes.put("crawl", { concurrency: 2 });
    expect(await laneOfTask(other.rota, { lane: "crawl" })).toBe("crawl");
    expect(await laneOfTask(other.rota, { lane: "nowhere" })).toBe("main");

    await one.rota.lanes.put("mail", { concurrency: 2 });
    const batch = await other.rota.tasks.submitBatch({ tasks: [{ lane: "mail", message: "x" }] });
    expect((await other.rota.tasks.get(batch.taskIds[0] as string)).lane).toBe("mail");
    await one.rota.lanes.put("talk", { concurrency: 2 });
    const said = await other.rota.sessions.send("a", { lane: "talk", message: "x" });
    expect((await other.rota.tasks.get(said.taskId as string)).lane).toBe("talk");
    await one.rota.lanes.put("own", { concurrency: 2 });
    expect(await other.rota.agents.create({ id: "a", lane: "own" })).toMatchObject({ lane: "own" });
  });

  test("is looked for only where a name is unknown and others could have made it", async () => {
    const looks: string[] = [];
    const meddler = { before: ({ operation }: { operation: string }) => void looks.push(operation) };
    const settings = () => looks.splice(0).filter((operation) => operation === "lanes.settings").length;
    const { open } = await shared();
    const { rota } = await open({ meddler });
    await settle();
    settings();
    await rota.tasks.submitMany(Array(5).fill({ lane: "team", message: "x" }));
    await rota.tasks.submit({ lane: "not a name", message: "x" });
    expect(settings()).toBe(0);
    await Promise.all(Array.from({ length: 20 }, () => rota.tasks.submit({ lane: "nowhere", message: "x" })));
    expect(settings()).toBe(1);

    const alone = await openTestRota({ meddler });
    settings();
    await alone.rota.tasks.submit({ lane: "nowhere", message: "x" });
    expect(settings()).toBe(0);
  });

  test("is known in the end to a node that gets no signals", async () => {
    const { clock, storage, open } = await shared();
    const held = new Held();
    const one = await open();
    const other = await open({
      storage: deaf(storage),
      options: { executors: { message: held.executor } },
    });
    await other.rota.start();
    await settle();
    await one.rota.lanes.put("crawl", { concurrency: 1 });
    await one.rota.tasks.submit({ lane: "crawl", message: "x" });
    await clock.advance(29_000);
    expect(held.started).toBe(0);
    await clock.advance(10_000);
    expect(held.started).toBe(1);
  });
});

describe("the lane `tasks`", () => {
  test("can be changed as any other while the configuration does not describe it", async () => {
    const { open, storage } = await shared();
    const held = new Held();
    const first = await open({ options: { executors: { message: held.executor } } });
    await first.rota.start();
    expect(await laneOf(first.rota, "tasks")).toMatchObject({ concurrency: 4, total: 20 });
    await first.rota.lanes.put("tasks", { concurrency: 2, total: 30 });
    await first.rota.tasks.submitMany(Array(9).fill({ lane: "tasks", message: "x" }));
    expect(await held.startedAfterAWhile()).toBe(2);
    await first.rota.lanes.put("tasks", { concurrency: 5 });
    expect(await held.startedAfterAWhile()).toBe(5);
    expect((await first.rota.stats()).config).toMatchObject({ workerCount: 5, maxInflight: 0 });
    const stored = async () => (await storage.lanes.list()).find(({ name }) => name === "tasks");
    expect(await stored()).toMatchObject({ total: null, perAgent: 10 });
    const next = await open();
    expect(await laneOf(next.rota, "tasks")).toMatchObject({ concurrency: 5, total: null });
  });

  test.each(["workerCount", "maxInflight", "maxPerAgentInflight"])(
    "is described by `scheduler.%s`, which a program or a file may set",
    async (name) => {
      const { open } = await shared();
      await (await open()).rota.lanes.put("tasks", { concurrency: 9, total: 9 });
      const { rota } = await open({ options: { scheduler: { [name]: 7 } } });
      expect(await laneOf(rota, "tasks")).toMatchObject({
        concurrency: name === "workerCount" ? 7 : 4,
        total: name === "maxInflight" ? 7 : 20,
      });
      await expect(rota.lanes.put("tasks", { concurrency: 1 })).rejects.toMatchObject({
        code: "conflict",
        message: expect.stringContaining("remove these options"),
      });
    },
  );

  test("is described by a configuration that is reloaded, but not by what takes effect at a start", async () => {
    const { rota } = await openTestRota({ options: { scheduler: { maxPerAgent: 50 } } });
    await rota.lanes.put("tasks", { concurrency: 9, total: 30 });
    await rota.reload({ scheduler: { workerCount: 8, agingSec: 5 } });
    expect(await laneOf(rota, "tasks")).toMatchObject({ concurrency: 9, total: 30 });
    await rota.reload({ scheduler: { maxInflight: 7 } });
    expect(await laneOf(rota, "tasks")).toMatchObject({ concurrency: 4, total: 7 });
    await rota.reload({ scheduler: {} });
    expect(await laneOf(rota, "tasks")).toMatchObject({ concurrency: 4, total: 7 });
    await expect(rota.lanes.put("tasks", { concurrency: 1 })).rejects.toMatchObject({ code: "conflict" });
  });
});

describe("what is stored of lanes", () => {
  test("holds after a restart, and the configuration over it", async () => {
    const { open } = await shared();
    const first = await open();
    await first.rota.lanes.put("main", { concurrency: 3, total: 5 });
    await first.rota.lanes.put("crawl", { concurrency: 2 });
    const next = await open({ options: { lanes: { crawl: { concurrency: 7, total: 9 } } } });
    expect(await laneOf(next.rota, "main")).toMatchObject({ concurrency: 3, total: 5 });
    expect(await laneOf(next.rota, "crawl")).toMatchObject({ concurrency: 7, total: 9 });
    expect(await laneOfTask(next.rota, { lane: "crawl" })).toBe("crawl");
    await expect(next.rota.lanes.put("crawl", { concurrency: 1 })).rejects.toMatchObject({
      code: "conflict",
    });
  });

  test("waits under the configuration, and holds again when that says nothing any more", async () => {
    const held = new Held();
    const { rota, log } = await openTestRota({ options: { executors: { message: held.executor } } });
    await rota.start();
    await rota.lanes.put("crawl", { concurrency: 1, total: 4 });
    await rota.tasks.submitMany(Array(9).fill({ lane: "crawl", message: "x" }));
    expect(await held.startedAfterAWhile()).toBe(1);
    expect(await rota.reload({ lanes: { crawl: 3 } })).toEqual({
      changed: ["lanes.crawl"],
      needsRestart: [],
    });
    expect(await held.startedAfterAWhile()).toBe(3);
    await expect(rota.lanes.put("crawl", { concurrency: 9 })).rejects.toMatchObject({ code: "conflict" });
    await rota.reload({ lanes: {} });
    expect(await laneOf(rota, "crawl")).toMatchObject({ concurrency: 1, total: 4 });
    expect(
      log.messages("info").filter((message) => message.includes("was removed from the configuration")),
    ).toEqual([]);
    await rota.lanes.put("crawl", { concurrency: 9, total: 4 });
    expect(await held.startedAfterAWhile()).toBe(4);
  });

  test("cannot undo what the configuration of another node says of the total", async () => {
    const { open } = await shared();
    const configured = await open({ options: { lanes: { crawl: { concurrency: 2, total: 3 } } } });
    const plain = await open();
    await plain.rota.lanes.put("crawl", { concurrency: 8, total: 8 });
    await settle();
    expect(await laneOf(configured.rota, "crawl")).toMatchObject({ concurrency: 2, total: 3 });
    expect(await laneOf(plain.rota, "crawl")).toMatchObject({ concurrency: 8, total: 3 });
  });

  test("has the order of all lanes, also when that changes", async () => {
    const { rota, storage } = await openTestRota({ options: { scheduler: { strategy: "priority-fifo" } } });
    await rota.lanes.put("crawl", { concurrency: 1 });
    const crawl = async () => (await storage.lanes.list()).find(({ name }) => name === "crawl");
    expect(await crawl()).toMatchObject({ strategy: "priority-fifo", agingMs: 0, perAgent: null });
    await rota.reload({ scheduler: { agingSec: 20 } });
    expect(await crawl()).toMatchObject({ strategy: "priority-fifo", agingMs: 20_000 });
  });

  test("is taken over once the storage lets it, and shown as it is until then", async () => {
    const { open } = await shared();
    let broken = false;
    const meddler = {
      before: ({ operation }: { operation: string }) => {
        if (broken && operation === "lanes.configure") throw away();
      },
    };
    const { rota, clock } = await open({ meddler });
    await settle();
    broken = true;
    await expect(rota.lanes.put("crawl", { concurrency: 5 })).rejects.toMatchObject({
      code: "storage_unavailable",
    });
    broken = false;
    await clock.advance(5_000);
    expect(await laneOf(rota, "crawl")).toMatchObject({ concurrency: 5 });
    expect(await laneOfTask(rota, { lane: "crawl" })).toBe("crawl");
  });

  test("is bounded", async () => {
    const clock = new ManualClock();
    const storage = await openMemory(clock);
    for (let n = 0; n < 1_000; n++) {
      await storage.lanes.put({ name: `lane-${n}`, concurrency: 1, total: null });
    }
    const { rota } = await openTestRota({ clock, storage });
    await rota.lanes.put("lane-7", { concurrency: 2 });
    await expect(rota.lanes.put("one-more", { concurrency: 1 })).rejects.toMatchObject({
      code: "conflict",
      message: "1000 lanes are stored, which is the limit: use one of them",
    });
  });
});

test("a lane of which something is left is listed, though this node does not have it, and can be cleared", async () => {
  const { open } = await shared();
  const first = await open({ options: { lanes: { old: 1, empty: 1 } } });
  await first.rota.tasks.submit({ lane: "old", message: "x" });
  const { rota } = await open();
  expect(await laneOf(rota, "old")).toMatchObject({ concurrency: 0, waiting: 1 });
  expect(await laneOf(rota, "empty")).toBeUndefined();
  expect(await rota.lanes.clear("old")).toEqual({ cancelled: 1 });
  expect(await rota.lanes.clear("empty")).toEqual({ cancelled: 0 });
  expect(await laneOf(rota, "old")).toBeUndefined();
});

test("a lane that is cleared ends all that waits in it, however many those are", async () => {
  const { rota } = await openTestRota({
    options: { scheduler: { maxQueueSize: 10_000, maxPerAgent: 10_000 } },
  });
  await rota.tasks.submitMany(Array(1_234).fill({ lane: "team", message: "x" }));
  expect(await rota.lanes.clear("team")).toEqual({ cancelled: 1_234 });
  expect(await rota.tasks.counts()).toEqual({ counts: { cancelled: 1_234 }, total: 1_234 });
});
