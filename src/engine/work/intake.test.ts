import { describe, expect, test } from "vitest";
import { manyTasks, newTask, ROOMY } from "../../../test/support/engine.ts";
import { away, type Call, meddle, openMemory } from "../../../test/support/storages.ts";
import { jsonText } from "../../model/text/json-text.ts";
import type { InsertedTask, NewTask } from "../../storage/storage.ts";
import { ManualClock, settle } from "../../testing/manual-clock.ts";
import { Latch } from "../../testing/signals.ts";
import { Intake } from "./intake.ts";

async function makeIntake(meddler: Parameters<typeof meddle>[1] = {}) {
  const clock = new ManualClock();
  const storage = await openMemory(clock);
  const lane = {
    name: "tasks",
    total: null,
    perAgent: null,
    perTenant: null,
    strategy: "fair-fifo",
    agingMs: 0,
  } as const;
  await storage.lanes.configure({ lanes: [lane] });
  const batches: string[][] = [];
  const areOneCall: boolean[] = [];
  const sent: string[] = [];
  const reported: string[] = [];
  const intake = new Intake({
    storage: meddle(storage, {
      ...meddler,
      before: (call) => {
        if (call.operation === "tasks.insert") {
          batches.push(idsOf(call));
          areOneCall.push(call.params.isOneCall);
        }
        return meddler.before?.(call);
      },
    }),
    clock,
    random: () => 0,
    limits: () => ROOMY,
    claimFor: () => null,
    onSent: (tasks) => sent.push(...tasks.map(({ id }) => id)),
    onInserted: (_tasks, answers) => reported.push(...answers.map(({ id }) => id)),
  });
  return { intake, clock, storage, batches, areOneCall, sent, reported };
}

/** With its text, as it has one once it is checked. */
function largeTask(overrides: Partial<NewTask>, size = 900_000): NewTask {
  const task = newTask({ ...overrides, payload: "x".repeat(size) });
  jsonText(task.spec);
  return task;
}

function idsOf({ params }: Call): string[] {
  return params.tasks.map(({ id }: NewTask) => id);
}

describe("tasks are written in groups:", () => {
  test("a task that comes alone does not wait for others", async () => {
    const { intake, batches, reported } = await makeIntake();
    const inserted = await intake.add(newTask({ id: "alone" }));
    expect(inserted).toMatchObject({ id: "alone", state: "queued", position: 1 });
    expect(batches).toEqual([["alone"]]);
    expect(reported).toEqual(["alone"]);
  });

  test("the dispatcher is notified of a task while its insert is under way", async () => {
    const answered = new Latch();
    const { intake, sent, reported } = await makeIntake({ after: () => answered.opened });
    const inserted = intake.add(newTask({ id: "on its way" }));
    await settle();
    expect({ sent, reported }).toEqual({ sent: ["on its way"], reported: [] });
    answered.open();
    await inserted;
    expect(reported).toEqual(["on its way"]);
  });

  test("those of one turn of the event loop share a transaction, in order", async () => {
    const { intake, batches } = await makeIntake();
    const tasks = manyTasks(50);
    const inserted = await Promise.all(tasks.map((task) => intake.add(task)));
    expect(batches).toEqual([tasks.map(({ id }) => id)]);
    expect(inserted.map(({ position }) => position)).toEqual(tasks.map((_, index) => index + 1));
  });

  test("the storage knows whether one call waits for all of a group", async () => {
    const { intake, areOneCall } = await makeIntake();
    await intake.addMany(manyTasks(3));
    await Promise.all([intake.add(newTask({ id: "one" })), intake.add(newTask({ id: "two" }))]);
    expect(areOneCall).toEqual([true, false]);
  });

  test("as long as every turn brings more it gathers, but not for ever", async () => {
    const { intake, batches } = await makeIntake();
    const added: Promise<InsertedTask>[] = [];
    // The next one of these comes before the intake looks whether there is more, as requests do.
    const addOneEachTurn = (turn: number, done: () => void) => {
      if (turn === 10) return done();
      setImmediate(() => addOneEachTurn(turn + 1, done));
      added.push(intake.add(newTask({ id: `t${turn}` })));
    };
    await new Promise<void>((done) => addOneEachTurn(0, done));
    await Promise.all(added);
    expect(batches.flat()).toEqual(Array.from({ length: 10 }, (_, turn) => `t${turn}`));
    expect(batches.length).toBeGreaterThan(1);
    expect(batches.length).toBeLessThan(6);
    expect(Math.max(...batches.map((batch) => batch.length))).toBeLessThanOrEqual(5);
  });

  test("those that arrive while one is written gather for the next", async () => {
    const latch = new Latch();
    const { intake, batches } = await makeIntake({
      before: () => (batches.length === 1 ? latch.opened : undefined),
    });
    const first = intake.add(newTask({ id: "first" }));
    await settle();
    const later: Promise<InsertedTask>[] = [];
    for (const id of ["second", "third"]) {
      later.push(intake.add(newTask({ id })));
      await settle();
    }
    expect(batches).toEqual([["first"]]);
    latch.open();
    await Promise.all([first, ...later]);
    expect(batches).toEqual([["first"], ["second", "third"]]);
  });

  test("no transaction holds more than five hundred", async () => {
    const { intake, batches } = await makeIntake();
    await intake.addMany(manyTasks(1_200));
    expect(batches.map(({ length }) => length)).toEqual([500, 500, 200]);
  });

  test("none takes more than a quarter of a megabyte of large inputs, unless it is one task", async () => {
    const { intake, batches } = await makeIntake();
    const sizes = [100_000, 100_000, 100_000, 900_000, 100_000];
    await Promise.all(sizes.map((size, n) => intake.add(largeTask({ id: `t${n}` }, size))));
    expect(batches).toEqual([["t0", "t1"], ["t2"], ["t3"], ["t4"]]);
  });

  test("no task waits for a large one of another tenant", async () => {
    const answered = new Latch();
    const { intake, batches, reported } = await makeIntake({
      before: (call) => (idsOf(call).includes("large") ? answered.opened : undefined),
    });
    const large = intake.add(largeTask({ id: "large" }));
    await settle();
    await Promise.all([1, 2].map((n) => intake.add(newTask({ id: `small-${n}`, tenant: "globex" }))));
    expect(reported).toEqual(["small-1", "small-2"]);
    answered.open();
    await large;
    expect(batches).toEqual([["large"], ["small-1", "small-2"]]);
  });

  test("those of one tenant stay in order, whatever their size", async () => {
    const answered = new Latch();
    const { intake, reported } = await makeIntake({
      before: (call) => (idsOf(call).includes("first") ? answered.opened : undefined),
    });
    const written = [
      intake.add(newTask({ id: "first" })),
      intake.add(largeTask({ id: "large" })),
      intake.add(newTask({ id: "last" })),
    ];
    await settle();
    expect(reported).toEqual([]);
    answered.open();
    await Promise.all(written);
    expect(reported).toEqual(["first", "large", "last"]);
  });

  test("what was written so far includes large tasks", async () => {
    const answered = new Latch();
    const { intake, reported } = await makeIntake({
      before: (call) => (idsOf(call).includes("large") ? answered.opened : undefined),
    });
    void intake.add(largeTask({ id: "large" }));
    void intake.add(newTask({ id: "small", tenant: "globex" }));
    const written = intake.written().then(() => reported.length);
    await settle();
    answered.open();
    expect(await written).toBe(2);
    await intake.flush();
  });

  test("`flush` waits for all tasks that are not written yet", async () => {
    const { intake, storage } = await makeIntake();
    void intake.addMany(manyTasks(600));
    await intake.flush();
    expect(await storage.tasks.counts({ tenant: "default" })).toEqual({ queued: 600 });
  });
});

describe("a batch is written whole:", () => {
  function newBatch(id: string, size: number) {
    const batch = { id, tenant: "default", parallelism: 2, callbackUrl: null };
    return { batch, tasks: Array.from({ length: size }, (_, n) => newTask({ id: `${id}-${n}`, batch: id })) };
  }

  test("it and its tasks are durable together", async () => {
    const { intake, storage, batches } = await makeIntake();
    const { batch, tasks } = newBatch("b", 5);
    const answers = await intake.addMany(tasks, batch);
    expect(answers.map(({ id, state }) => [id, state])).toEqual(tasks.map(({ id }) => [id, "queued"]));
    expect(batches).toEqual([tasks.map(({ id }) => id)]);
    expect(await storage.tasks.getBatch({ tenant: "default", id: "b" })).toMatchObject({ parallelism: 2 });
  });

  test("a transaction takes all of one whose end would be over its bound, and others beside it as before", async () => {
    const { intake, batches } = await makeIntake();
    const first = newBatch("first", 100);
    const second = newBatch("second", 100);
    await Promise.all([
      intake.addMany(manyTasks(350)),
      intake.addMany(first.tasks, first.batch),
      intake.addMany(second.tasks, second.batch),
      intake.addMany(manyTasks(600)),
    ]);
    expect(batches.map(({ length }) => length)).toEqual([550, 500, 100]);
  });

  test("one task that cannot be written fails all of its batch, and no other task", async () => {
    const { intake, storage } = await makeIntake({
      before: (call) => {
        if (idsOf(call).includes("spoilt-7")) throw new Error("cannot be written");
      },
    });
    const spoilt = newBatch("spoilt", 10);
    const sound = newBatch("sound", 10);
    const outcomes = await Promise.allSettled([
      intake.add(newTask()),
      intake.addMany(spoilt.tasks, spoilt.batch),
      intake.addMany(sound.tasks, sound.batch),
      intake.add(newTask()),
    ]);
    expect(outcomes.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
    expect(await storage.tasks.counts({ tenant: "default" })).toEqual({ queued: 12 });
    expect(await storage.tasks.getBatch({ tenant: "default", id: "spoilt" })).toBeNull();
  });

  test("one whose response was lost is written once", async () => {
    let lost = false;
    const { intake, clock, storage, batches } = await makeIntake({
      after: () => {
        if (lost) return;
        lost = true;
        throw away();
      },
    });
    const { batch, tasks } = newBatch("b", 3);
    const added = intake.addMany(tasks, batch);
    await clock.advance(1_000);
    expect((await added).map(({ state }) => state)).toEqual(["queued", "queued", "queued"]);
    expect(batches).toHaveLength(2);
    expect(await storage.tasks.counts({ tenant: "default" })).toEqual({ queued: 3 });
  });
});

describe("when the storage is away,", () => {
  test("an insert is repeated under the same ids, and nothing is stored twice", async () => {
    let failures = 2;
    const { intake, clock, storage, batches, reported } = await makeIntake({
      // The second time everything was written, and only the response was lost.
      after: () => {
        if (failures-- > 0) throw away();
      },
    });
    const inserted = intake.addMany(manyTasks(3));
    await clock.advance(1_000);
    expect((await inserted).map(({ state }) => state)).toEqual(["queued", "queued", "queued"]);
    expect(batches).toHaveLength(3);
    expect(new Set(batches.flat()).size).toBe(3);
    expect(reported).toHaveLength(3);
    expect(await storage.tasks.counts({ tenant: "default" })).toEqual({ queued: 3 });
  });

  test("the caller gets the error after five tries, and the next ones are tried afresh", async () => {
    let broken = true;
    const { intake, clock, batches } = await makeIntake({
      before: () => {
        if (broken) throw away();
      },
    });
    const failed = expect(intake.add(newTask())).rejects.toMatchObject({ code: "storage_unavailable" });
    await clock.advance(10_000);
    await failed;
    expect(batches).toHaveLength(5);
    broken = false;
    await expect(intake.add(newTask({ id: "later" }))).resolves.toMatchObject({ id: "later" });
  });

  test("a bounded number waits to be written, and the rest is refused", async () => {
    const latch = new Latch();
    const { intake } = await makeIntake({ before: () => latch.opened });
    const held = intake.addMany(manyTasks(500));
    await settle();
    const waiting = intake.addMany(manyTasks(20_000));
    expect(() => intake.add(newTask())).toThrow("the storage does not keep up");
    latch.open();
    await Promise.all([held, waiting]);
    await expect(intake.add(newTask())).resolves.toMatchObject({ state: "queued" });
  });
});

test("a task that cannot be written takes no other along", async () => {
  const { intake } = await makeIntake({
    before: (call) => {
      if (idsOf(call).includes("poison")) throw new Error("cannot be written");
    },
  });
  const tasks = [...manyTasks(7), newTask({ id: "poison" }), ...manyTasks(5)];
  const settled = await Promise.allSettled(tasks.map((task) => intake.add(task)));
  expect(settled.map(({ status }) => status)).toEqual(
    tasks.map(({ id }) => (id === "poison" ? "rejected" : "fulfilled")),
  );
});
