import { describe, expect, onTestFinished, test } from "vitest";
import { manyTasks, newTask, ROOMY } from "../../test/support/engine.ts";
import { RecordingLog } from "../../test/support/recording-log.ts";
import { away, type Meddler, meddle, openMemory } from "../../test/support/storages.ts";
import type { RotaEvent } from "../model/event.ts";
import { Redactor } from "../model/redactor.ts";
import { ManualClock, settle } from "../testing/manual-clock.ts";
import { Latch } from "../testing/signals.ts";
import { handleEvents } from "./event-handlers.ts";
import { EventLog } from "./event-log.ts";
import { EventReader, type EventReaderOptions } from "./event-reader.ts";

async function makeLog(meddler: Meddler = {}) {
  const clock = new ManualClock();
  const storage = await openMemory(clock);
  await storage.lanes.configure({
    lanes: [
      { name: "tasks", total: null, perAgent: null, perTenant: null, strategy: "fair-fifo", agingMs: 0 },
    ],
  });
  let reads = 0;
  const log = new RecordingLog();
  const eventLog = new EventLog({
    redactor: () => new Redactor([]),
    clock,
    log,
    storage: meddle(storage, {
      ...meddler,
      before: (call) => {
        if (call.operation === "events.read") reads += 1;
        return meddler.before?.(call);
      },
    }),
  });
  const unsubscribe = storage.subscribe(({ kind }) => kind === "events" && eventLog.wake());
  onTestFinished(() => eventLog.close());
  return {
    clock,
    log,
    storage,
    eventLog,
    /** From now on signals are lost. */
    deafen: unsubscribe,
    reads: () => reads,
    add: (...ids: string[]) =>
      storage.tasks.insert({ tasks: ids.map((id) => newTask({ id })), limits: ROOMY }),
    addMany: (count: number) => storage.tasks.insert({ tasks: manyTasks(count), limits: ROOMY }),
    reader: (options: Omit<EventReaderOptions, "tenant"> = {}) =>
      new EventReader(eventLog, { tenant: "default", ...options }),
  };
}

/** Reads this many events, then ends. */
async function read(reader: EventReader, count: number): Promise<RotaEvent[]> {
  const events: RotaEvent[] = [];
  for await (const event of reader) {
    events.push(event);
    if (events.length === count) break;
  }
  return events;
}

function idsOf(events: readonly RotaEvent[]): string[] {
  return events.map(({ taskId }) => taskId);
}

describe("following the log", () => {
  test("sends events in order to every listener", async () => {
    const { eventLog, add } = await makeLog();
    const seen: string[][] = [[], []];
    for (const list of seen) eventLog.listen(({ taskId }) => list.push(taskId));
    await eventLog.ready;
    await add("a");
    await add("b", "c");
    await settle();
    expect(seen).toEqual([
      ["a", "b", "c"],
      ["a", "b", "c"],
    ]);
  });

  test("starts from now, not from the beginning of time", async () => {
    const { eventLog, add } = await makeLog();
    await add("before");
    const seen: string[] = [];
    eventLog.listen(({ taskId }) => seen.push(taskId));
    await eventLog.ready;
    await add("after");
    await settle();
    expect(seen).toEqual(["after"]);
  });

  test("reads nothing while there is no listener, and stops when the last one leaves", async () => {
    const { eventLog, add, clock, reads } = await makeLog();
    await add("a");
    await clock.advance(60_000);
    expect(reads()).toBe(0);
    const undo = eventLog.listen(() => {});
    await clock.advance(60_000);
    undo();
    await settle();
    const before = reads();
    await add("b");
    await clock.advance(60_000);
    expect([reads(), clock.pending]).toEqual([before, 0]);
  });

  test("finds entries without a signal, within the poll", async () => {
    const { eventLog, add, clock, deafen } = await makeLog();
    const seen: string[] = [];
    eventLog.listen(({ taskId }) => seen.push(taskId));
    await settle();
    deafen();
    await add("unheard");
    await clock.advance(5_000);
    expect(seen).toEqual(["unheard"]);
  });

  test("reads on through many pages", async () => {
    const { eventLog, addMany, storage, reads } = await makeLog();
    let seen = 0;
    eventLog.listen(() => {
      seen += 1;
    });
    await eventLog.ready;
    for (let i = 0; i < 3; i++) await addMany(700);
    await settle();
    expect(seen).toBe(2_100);
    expect(reads()).toBeLessThan(15);
    expect(eventLog.position).toBe((await storage.events.range()).newest);
  });

  test("waits for a storage that is away, misses nothing, and says so once", async () => {
    let broken = false;
    const { eventLog, add, clock, log } = await makeLog({
      before: () => {
        if (broken) throw away();
      },
    });
    const seen: string[] = [];
    eventLog.listen(({ taskId }) => seen.push(taskId));
    await settle();
    broken = true;
    await add("a");
    await clock.advance(20_000);
    await add("b");
    broken = false;
    await clock.advance(1_000);
    expect(seen).toEqual(["a", "b"]);
    expect(log.messages()).toHaveLength(1);
  });
});

describe("a handler", () => {
  test("that throws or rejects is named in the log and goes on being called, as are the others", async () => {
    const { eventLog, add, log } = await makeLog();
    const seen: string[] = [];
    handleEvents(
      eventLog,
      () => {
        throw new Error("thrown");
      },
      log,
    );
    handleEvents(eventLog, () => Promise.reject(new Error("rejected")), log);
    handleEvents(eventLog, ({ taskId }) => void seen.push(taskId), log);
    await eventLog.ready;
    await add("a", "b");
    await settle();
    expect(seen).toEqual(["a", "b"]);
    expect(log.messages("error")).toEqual(Array(4).fill("an event handler failed"));
  });

  test("that never settles delays no other", async () => {
    const { eventLog, add, log } = await makeLog();
    const seen: string[] = [];
    handleEvents(eventLog, () => new Promise(() => {}), log);
    handleEvents(eventLog, ({ taskId }) => void seen.push(taskId), log);
    await eventLog.ready;
    await add("a", "b");
    await settle();
    expect(seen).toEqual(["a", "b"]);
  });

  test("is not called after it was undone, not even for the rest of a page", async () => {
    const { eventLog, add, log } = await makeLog();
    const seen: string[] = [];
    const undo = handleEvents(
      eventLog,
      ({ taskId }) => {
        seen.push(taskId);
        undo();
      },
      log,
    );
    await eventLog.ready;
    await add("a", "b");
    await settle();
    expect(seen).toEqual(["a"]);
  });
});

describe("catching up", () => {
  test("ends once everything that has happened has been handed on", async () => {
    const { eventLog, deafen, addMany } = await makeLog();
    const seen: number[] = [];
    eventLog.listen((event) => seen.push(event.seq));
    await eventLog.ready;
    // The log is not woken: it finds them by polling.
    deafen();
    await addMany(450);
    const caughtUp = eventLog.caughtUp();
    eventLog.wake();
    await caughtUp;
    expect(seen).toHaveLength(450);
  });

  test("ends at once when there is no listener, or nothing is missing", async () => {
    const { eventLog, add, clock } = await makeLog();
    await add("a");
    await eventLog.caughtUp();
    eventLog.listen(() => {});
    await eventLog.ready;
    await eventLog.caughtUp();
    expect(clock.now()).toBe(Date.UTC(2026, 0, 1));
  });

  test("gives up after a second, or when the storage is away", async () => {
    let isAway = false;
    const { eventLog, deafen, add, clock } = await makeLog({
      before: ({ operation }) => {
        if (isAway && operation.startsWith("events.")) throw away();
      },
    });
    eventLog.listen(() => {});
    await eventLog.ready;
    await settle();
    deafen();
    await add("a");
    const late = eventLog.caughtUp();
    await clock.advance(1_000);
    await late;
    isAway = true;
    await eventLog.caughtUp();
  });
});

describe("a reader", () => {
  test("gets what happens from the moment it was made", async () => {
    const { reader, add } = await makeLog();
    await add("before");
    const events = reader();
    await settle();
    await add("a", "b");
    expect(idsOf(await read(events, 2))).toEqual(["a", "b"]);
  });

  test("gets what happened after the last event it saw, then what happens", async () => {
    const { reader, add } = await makeLog();
    await add("a", "b", "c");
    const [first] = await read(reader({ after: 0 }), 1);
    const events = reader({ after: first?.seq ?? 0 });
    const reading = read(events, 4);
    await settle();
    await add("d", "e");
    expect(idsOf(await reading)).toEqual(["b", "c", "d", "e"]);
  });

  test("that is slow misses nothing, delays no other reader, and takes no more memory than its buffer", async () => {
    const { reader, addMany, eventLog } = await makeLog();
    let others = 0;
    eventLog.listen(() => {
      others += 1;
    });
    const slow = reader();
    const [first] = await Promise.all([slow.next(), settle().then(() => addMany(1))]);
    for (let i = 0; i < 8; i++) await addMany(500);
    await settle();
    expect(others).toBe(4_001);
    const rest = await read(slow, 4_000);
    expect(rest.map(({ seq }) => seq)).toEqual(rest.map((_, index) => (first.value?.seq ?? 0) + 1 + index));
  });

  test("that fell behind goes on live once it has caught up", async () => {
    const { reader, addMany, add, reads } = await makeLog();
    const events = reader();
    await settle();
    for (let i = 0; i < 4; i++) await addMany(500);
    await settle();
    for (let i = 0; i < 2_000; i++) await events.next();
    const next = events.next();
    await settle();
    const before = reads();
    await add("live");
    expect((await next).value).toMatchObject({ taskId: "live" });
    await settle();
    // Only the reader that follows for all listeners has read.
    expect(reads() - before).toBeLessThanOrEqual(2);
  });

  test("gets every event exactly once, however reading and happening interleave", async () => {
    const { reader, add } = await makeLog();
    const ids = Array.from({ length: 300 }, (_, index) => `t${index}`);
    const events = reader({ after: 0 });
    const reading = read(events, ids.length);
    for (const [index, id] of ids.entries()) {
      await add(id);
      if (index % 7 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    expect(idsOf(await reading)).toEqual(ids);
  });

  test("ends with its signal, also while it waits", async () => {
    const { reader } = await makeLog();
    const stop = new AbortController();
    const events = reader({ signal: stop.signal });
    const waiting = events.next();
    await settle();
    stop.abort();
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(await events.next()).toEqual({ done: true, value: undefined });
    expect(await reader({ signal: AbortSignal.abort() }).next()).toEqual({ done: true, value: undefined });
  });

  test("ends when the log is closed", async () => {
    const { reader, eventLog } = await makeLog();
    const waiting = reader().next();
    await settle();
    await eventLog.close();
    expect(await waiting).toEqual({ done: true, value: undefined });
    expect(await reader().next()).toEqual({ done: true, value: undefined });
  });

  test("leaves the log when its loop is left", async () => {
    const { reader, add, clock, reads } = await makeLog();
    const reading = read(reader(), 1);
    await settle();
    await add("a");
    await reading;
    await settle();
    const before = reads();
    await clock.advance(60_000);
    expect(reads()).toBe(before);
  });

  test("gets a gap when the events after its position have been deleted", async () => {
    const { reader, add, storage, clock } = await makeLog();
    await add("a", "b");
    await storage.tasks.cancel({ tenant: "default", ids: ["a"], error: null });
    await clock.advance(100_000);
    await add("c");
    await storage.tasks.prune({ retentionMs: 50_000, rejectedMax: 10, limit: 100 });
    const { oldest } = await storage.events.range();
    expect(oldest).toBeGreaterThan(2);
    const gaps: unknown[] = [];
    const events = reader({ after: 1, onGap: (gap) => gaps.push(gap) });
    expect((await events.next()).value?.seq).toBe(oldest);
    expect(gaps).toEqual([{ after: 1, oldest }]);
  });

  test("gets a gap when everything has been deleted, and goes on from there", async () => {
    const { reader, add, storage, clock } = await makeLog();
    await add("a", "b");
    await storage.tasks.cancel({ tenant: "default", ids: ["a", "b"], error: null });
    const { newest } = await storage.events.range();
    await clock.advance(100_000);
    await storage.tasks.prune({ retentionMs: 50_000, rejectedMax: 10, limit: 100 });
    const gaps: unknown[] = [];
    const events = reader({ after: 1, onGap: (gap) => gaps.push(gap) });
    const reading = read(events, 1);
    await settle();
    await add("c");
    expect(idsOf(await reading)).toEqual(["c"]);
    expect(gaps).toEqual([{ after: 1, oldest: newest + 1 }]);
  });

  test("that asks for more than there ever was gets a gap, and what there is", async () => {
    const { reader, add } = await makeLog();
    await add("a");
    const gaps: unknown[] = [];
    const events = reader({ after: 5_000, onGap: (gap) => gaps.push(gap) });
    expect(idsOf(await read(events, 1))).toEqual(["a"]);
    expect(gaps).toEqual([{ after: 5_000, oldest: 1 }]);
  });

  test("gets the error of a storage that cannot be read", async () => {
    let broken = false;
    const latch = new Latch();
    const { reader } = await makeLog({
      before: () => {
        if (broken) throw away();
      },
    });
    const live = reader();
    await settle();
    broken = true;
    await expect(reader({ after: 0 }).next()).rejects.toMatchObject({ code: "storage_unavailable" });
    // A live reader goes on waiting: the log retries for it.
    const waiting = Promise.race([live.next(), latch.opened.then(() => "still waiting")]);
    await settle();
    latch.open();
    expect(await waiting).toBe("still waiting");
  });

  test("says from where to go on, also when nothing that it asked for has happened", async () => {
    const { reader, add, storage } = await makeLog();
    await add("before");
    const all = reader();
    const ofUnknown = reader({ agentId: "unknown" });
    expect([all.position, ofUnknown.position]).toEqual([undefined, undefined]);
    await Promise.all([all.ready, ofUnknown.ready]);
    expect([all.position, ofUnknown.position]).toEqual([1, 1]);
    await add("a", "b");
    await settle();
    // Two are at hand, and neither has been read.
    expect([all.position, ofUnknown.position]).toEqual([1, 3]);
    await all.next();
    expect(all.position).toBe(2);
    await all.next();
    expect(all.position).toBe(3);
    expect((await storage.events.range()).newest).toBe(3);
    await Promise.all([all.return(), ofUnknown.return()]);
  });

  test("that begins beyond the newest event goes on from the beginning", async () => {
    const { reader, add } = await makeLog();
    await add("a");
    const late = reader({ after: 90 });
    await late.ready;
    expect(late.position).toBe(0);
    expect(idsOf(await read(late, 1))).toEqual(["a"]);
  });
});
