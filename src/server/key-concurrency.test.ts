import { expect, test } from "vitest";
import { openKeyedServer } from "../../test/support/keyed-server.ts";
import { meddle, openMemory } from "../../test/support/storages.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { Latch, until } from "../testing/signals.ts";
import { KeyConcurrency } from "./key-concurrency.ts";

const NEVER = new AbortController().signal;

test("a key's work waits for its own, in turn, and for no other key's", async () => {
  const turns = new KeyConcurrency(1);
  const order: string[] = [];
  const leave = await turns.enter("a", NEVER);
  const waiting = ["first", "second"].map(async (name) => {
    const leaveLater = await turns.enter("a", NEVER);
    order.push(name);
    leaveLater();
  });
  const leaveOther = await turns.enter("b", NEVER);
  expect(order).toEqual([]);
  leave();
  // Twice is once.
  leave();
  await Promise.all(waiting);
  expect(order).toEqual(["first", "second"]);
  leaveOther();
});

test("work that is given up while it waits leaves its place to the next", async () => {
  const turns = new KeyConcurrency(1);
  const leave = await turns.enter("a", NEVER);
  const gone = new AbortController();
  const left = expect(turns.enter("a", gone.signal)).rejects.toThrow("gone");
  const next = turns.enter("a", NEVER);
  gone.abort(new Error("gone"));
  await left;
  leave();
  (await next)();
});

test("other work runs between the work of a key that waited, even if that never waits itself", async () => {
  const turns = new KeyConcurrency(1);
  const order: string[] = [];
  const working = ["first", "second", "third"].map(async (name) => {
    const leave = await turns.enter("a", NEVER);
    order.push(name);
    leave();
  });
  const other = new Promise<void>((resolve) => setImmediate(resolve)).then(() => order.push("other"));
  await Promise.all([...working, other]);
  expect(order).toEqual(["first", "other", "second", "third"]);
});

test("two pages of a key are read at once, and none for a caller who has left", async () => {
  const clock = new ManualClock();
  const latch = new Latch();
  let reading = 0;
  const storage = meddle(await openMemory(clock), {
    before: async ({ operation }) => {
      if (operation !== "tasks.list") return;
      reading += 1;
      await latch.opened;
    },
  });
  const { key, askWith, url } = await openKeyedServer({ storage, clock, start: false });
  const [own, other] = [await key({}), await key({})];
  const pages = Array.from({ length: 4 }, () => askWith(own, "/tasks?limit=1"));
  await until(() => reading === 2);
  const leaving = new AbortController();
  const left = fetch(`${url}/tasks?limit=1`, {
    headers: { authorization: `Bearer ${own}` },
    signal: leaving.signal,
  });
  const others = askWith(other, "/tasks?limit=1");
  await until(() => reading === 3);
  leaving.abort();
  await expect(left).rejects.toThrow();
  expect((await askWith(own, "/tasks/stats")).status).toBe(200);
  latch.open();
  for (const { status } of await Promise.all([...pages, others])) expect(status).toBe(200);
  expect((await askWith(own, "/tasks?limit=1")).status).toBe(200);
  expect(reading).toBe(6);
});
