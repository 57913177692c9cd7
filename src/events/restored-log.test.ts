import { describe, expect, onTestFinished, test } from "vitest";
import { newTask, ROOMY } from "../../test/support/engine.ts";
import { RecordingLog } from "../../test/support/recording-log.ts";
import { openMemory } from "../../test/support/storages.ts";
import { Redactor } from "../model/redactor.ts";
import type { Storage } from "../storage/storage.ts";
import { ManualClock, settle } from "../testing/manual-clock.ts";
import { EventLog } from "./event-log.ts";
import { EventReader, type EventReaderOptions } from "./event-reader.ts";
import { TaskWaiter } from "./task-waiter.ts";

/** Two histories that share their first tasks: a database before a restore, and after it. */
async function makeHistories(shared: readonly string[]) {
  const clock = new ManualClock();
  const open = async () => {
    const storage = await openMemory(clock);
    await storage.lanes.configure({
      lanes: [
        { name: "tasks", total: null, perAgent: null, perTenant: null, strategy: "fair-fifo", agingMs: 0 },
      ],
    });
    return storage;
  };
  const histories = { lost: await open(), restored: await open() };
  let current: Storage = histories.lost;
  const storage: Storage = {
    ...histories.lost,
    events: new Proxy(histories.lost.events, { get: (_group, name) => Reflect.get(current.events, name) }),
    tasks: new Proxy(histories.lost.tasks, { get: (_group, name) => Reflect.get(current.tasks, name) }),
  };
  const add = (to: Storage, ...ids: string[]) =>
    to.tasks.insert({ tasks: ids.map((id) => newTask({ id })), limits: ROOMY });
  const log = new RecordingLog();
  let restores = 0;
  const onRestored = () => {
    restores += 1;
  };
  const eventLog = new EventLog({ redactor: () => new Redactor([]), storage, clock, log, onRestored });
  onTestFinished(() => eventLog.close());
  await add(histories.lost, ...shared);
  await add(histories.restored, ...shared);
  await clock.advance(1_000);
  return {
    clock,
    log,
    eventLog,
    storage,
    restores: () => restores,
    /** What only the database of before has. */
    lose: async (...ids: string[]) => {
      await add(histories.lost, ...ids);
      eventLog.wake();
      await settle();
    },
    /** Puts the database back, and adds these before any reader polls. */
    restore: async (...ids: string[]) => {
      await clock.advance(1_000);
      current = histories.restored;
      if (ids.length > 0) await add(histories.restored, ...ids);
      eventLog.wake();
      await settle();
    },
    addLater: async (...ids: string[]) => {
      await add(histories.restored, ...ids);
      eventLog.wake();
      await settle();
    },
    reader: (options: Omit<EventReaderOptions, "tenant"> = {}) =>
      new EventReader(eventLog, { tenant: "default", ...options }),
  };
}

/** Reads until the test ends, and records tasks and gaps in the order in which they come. */
function follow(reader: (onGap: (gap: { after: number; oldest: number }) => void) => EventReader) {
  const seen: unknown[] = [];
  const events = reader((gap) => seen.push(gap));
  void (async () => {
    for await (const { taskId } of events) seen.push(taskId);
  })();
  return { seen, events };
}

describe("a reader of a database that is restored to an earlier state", () => {
  test("gets a gap and goes on, although the numbers went back", async () => {
    const { reader, lose, restore, addLater } = await makeHistories(["a", "b"]);
    const { seen, events } = follow((onGap) => reader({ onGap }));
    await settle();
    await lose("c", "d", "e");
    await restore();
    expect(seen).toEqual(["c", "d", "e", { after: 5, oldest: 1 }]);
    expect(events.position).toBe(2);
    await addLater("x");
    expect(seen.slice(4)).toEqual(["x"]);
  });

  test("gets a gap although as many events as were lost were written before it looked", async () => {
    const { reader, lose, restore, addLater, log, restores } = await makeHistories(["a", "b"]);
    const { seen } = follow((onGap) => reader({ onGap }));
    await settle();
    await lose("c", "d");
    await restore("v", "w", "x", "y");
    expect(seen).toEqual(["c", "d", { after: 4, oldest: 1 }, "v", "w", "x", "y"]);
    await addLater("z");
    expect(seen.slice(7)).toEqual(["z"]);
    expect([restores(), log.messages()]).toEqual([
      1,
      [expect.stringContaining("restored to an earlier state")],
    ]);
  });

  test("gets the entries that it had not read yet before the gap", async () => {
    const { reader, lose, restore } = await makeHistories(["a"]);
    const seen: unknown[] = [];
    const events = reader({ onGap: (gap) => seen.push(gap) });
    await events.ready;
    await lose("b", "c");
    await restore("x");
    for (const _turn of ["b", "c", "x"]) seen.push((await events.next()).value?.taskId);
    expect(seen).toEqual(["b", "c", { after: 3, oldest: 1 }, "x"]);
  });

  test("that had not read any lost entry gets no gap", async () => {
    const { reader, lose, restore } = await makeHistories(["a", "b", "c"]);
    await lose("d");
    const seen: unknown[] = [];
    const events = reader({ after: 2, onGap: (gap) => seen.push(gap) });
    await events.ready;
    await restore("x");
    for (const _turn of ["c", "x"]) seen.push((await events.next()).value?.taskId);
    expect(seen).toEqual(["c", "x"]);
  });

  test("that comes with a number that the log no longer has gets a gap first", async () => {
    const { reader, lose, restore, addLater } = await makeHistories(["a", "b"]);
    await lose("c", "d");
    await restore();
    const { seen } = follow((onGap) => reader({ after: 4, onGap }));
    await settle();
    expect(seen).toEqual([{ after: 4, oldest: 1 }, "a", "b"]);
    await addLater("x");
    expect(seen.slice(3)).toEqual(["x"]);
  });

  test("that only waits for a task learns that it is gone", async () => {
    const { storage, clock, eventLog, lose, restore } = await makeHistories(["a"]);
    const waiter = new TaskWaiter({ eventLog, clock });
    await lose("b");
    const waiting = waiter.wait({ tenant: "default" }, "b");
    const refused = expect(waiting).rejects.toMatchObject({ code: "not_found" });
    await settle();
    await restore();
    await refused;
    expect(await storage.tasks.get({ tenant: "default", id: "b" })).toBeNull();
  });
});

test("deleting old entries is no restore, whether or not any are left", async () => {
  const { reader, storage, clock, lose, restores } = await makeHistories(["a", "b"]);
  const { seen } = follow((onGap) => reader({ onGap }));
  await settle();
  await lose("c");
  await storage.tasks.cancel({ tenant: "default", ids: ["a", "b", "c"], error: null });
  await clock.advance(20_000);
  await storage.tasks.prune({ retentionMs: 1_000, rejectedMax: 0, limit: 100 });
  await clock.advance(20_000);
  await lose("d");
  await clock.advance(20_000);
  expect([restores(), seen]).toEqual([0, ["c", "a", "b", "c", "d"]]);
});
