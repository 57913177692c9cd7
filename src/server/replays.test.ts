import { describe, expect, test } from "vitest";
import { openStream } from "../../test/support/event-stream.ts";
import { openKeyedServer } from "../../test/support/keyed-server.ts";
import { ManualClock, settle } from "../testing/manual-clock.ts";
import { Latch, until } from "../testing/signals.ts";
import { RequestLimits } from "./middleware/request-limits.ts";
import { ReadTurns } from "./read-turns.ts";
import { Replays } from "./replays.ts";

const NEVER = new AbortController().signal;

const A = { key: "a", tenant: "one" };
const B = { key: "b", tenant: "one" };
const OTHER = { key: "c", tenant: "other" };

function openReplays({ hasSecondTenant = false } = {}) {
  const clock = new ManualClock();
  const limit = new RequestLimits(
    { perSecond: 10, burst: 20, maxExpensive: 1, ofTenant: { perSecond: 20, burst: 40, maxExpensive: 1 } },
    { clock, hasSecondTenant: () => hasSecondTenant, onRefused: () => {} },
  );
  const pages = new ReadTurns(() => hasSecondTenant);
  const replays = new Replays(limit, { streams: new ReadTurns(() => hasSecondTenant), pages });
  return { clock, limit, pages, replays };
}

/** A page of this many empty entries. */
function page(rows: number, looked = rows) {
  return { looked, entries: Array.from({ length: rows }, () => ({ bytes: 0 })) };
}

describe("the streams of one key", () => {
  test("read two pages at once, and the others in turn, also without a key", async () => {
    const { replays } = openReplays();
    for (const owner of [A, null]) {
      const latches = Array.from({ length: 5 }, () => new Latch());
      const begun: number[] = [];
      const reads = latches.map((latch, index) =>
        replays.paceOf(
          owner,
          NEVER,
        )(async () => {
          begun.push(index);
          await latch.opened;
          return page(0);
        }),
      );
      await settle();
      expect(begun).toEqual([0, 1]);
      latches[1]?.open();
      await settle();
      expect(begun).toEqual([0, 1, 2]);
      for (const latch of latches) latch.open();
      await Promise.all(reads);
      expect(begun).toEqual([0, 1, 2, 3, 4]);
    }
  });

  test("do not hold up those of another", async () => {
    const { replays } = openReplays();
    const never = new Latch();
    for (let count = 0; count < 5; count += 1) {
      void replays.paceOf(A, NEVER)(() => never.opened.then(() => page(0)));
    }
    expect(await replays.paceOf(B, NEVER)(async () => page(1))).toEqual(page(1));
  });

  test("leave the line when their reader goes away, and let the next one through", async () => {
    const { replays } = openReplays();
    const latch = new Latch();
    const held = [0, 1].map(() => replays.paceOf(A, NEVER)(() => latch.opened.then(() => page(0))));
    const reader = new AbortController();
    const left = replays.paceOf(A, reader.signal)(async () => expect.unreachable());
    const next = replays.paceOf(A, NEVER)(async () => page(3));
    reader.abort(new Error("gone"));
    await expect(left).rejects.toThrow("gone");
    latch.open();
    await Promise.all(held);
    expect(await next).toEqual(page(3));
  });

  test("go on after a read that failed", async () => {
    const { replays } = openReplays();
    for (let count = 0; count < 5; count += 1) {
      const failing = replays.paceOf(A, NEVER)(() => Promise.reject(new Error("away")));
      await expect(failing).rejects.toThrow("away");
    }
  });

  test("pay for what is read and looked at, and wait for a bucket that is not half full", async () => {
    const { replays, limit, clock } = openReplays();
    const read = () => replays.paceOf(A, NEVER)(async () => page(400, 2_000));
    // 400 rows are 8 units, and 2000 that were looked at another 4.
    await read();
    expect(() => limit.take(A, 9)).toThrow(/costs/);
    limit.take(A, 3);
    let isRead = false;
    const next = read().then(() => {
      isRead = true;
    });
    await clock.advance(400);
    expect(isRead).toBe(false);
    await clock.advance(100);
    await next;
  });

  test("go on once a second, also where requests take all there is", async () => {
    const { replays, limit, clock } = openReplays();
    let pages = 0;
    const read = async () => {
      for (;;) {
        await replays.paceOf(A, NEVER)(async () => page(50));
        pages += 1;
      }
    };
    limit.settle(A, 20);
    void read();
    for (let second = 1; second <= 5; second += 1) {
      await clock.advance(1_000);
      expect(pages).toBe(second);
      limit.settle(A, 20);
    }
  });

  test("stop waiting for their bucket when their reader goes away, and leave no timer", async () => {
    const { replays, limit, clock } = openReplays();
    limit.settle(A, 20);
    const reader = new AbortController();
    const read = replays.paceOf(A, reader.signal)(async () => expect.unreachable());
    await settle();
    expect(clock.pending).toBe(1);
    reader.abort(new Error("gone"));
    await expect(read).rejects.toThrow("gone");
    expect(clock.pending).toBe(0);
  });
});

test("pages of lists take the same turns, but not those that a stream with an empty bucket would have", async () => {
  const { replays, limit, pages, clock } = openReplays();
  const leave = await Promise.all([pages.enter(A, NEVER), pages.enter(A, NEVER)]);
  let begun = 0;
  const read = () =>
    replays.paceOf(
      A,
      NEVER,
    )(async () => {
      begun += 1;
      return page(0);
    });
  const first = read();
  await settle();
  expect(begun).toBe(0);
  leave[0]();
  await first;
  expect(begun).toBe(1);
  limit.settle(A, 20);
  const next = [read(), read()];
  await settle();
  (await pages.enter(A, NEVER))();
  leave[1]();
  await clock.advance(1_000);
  await Promise.all(next);
});

test("the streams of all keys of a tenant read three pages at once if there is a second tenant, whose streams do not wait", async () => {
  const { replays } = openReplays({ hasSecondTenant: true });
  const never = new Latch();
  let begun = 0;
  for (const owner of [A, A, B, B, { ...A, key: "d" }]) {
    void replays.paceOf(
      owner,
      NEVER,
    )(() => {
      begun += 1;
      return never.opened.then(() => page(0));
    });
  }
  expect(await replays.paceOf(OTHER, NEVER)(async () => page(1))).toEqual(page(1));
  await settle();
  expect(begun).toBe(3);
});

test("replays from the first event on go slower where a key asks for many, and are never broken off", async () => {
  const { key, askWith, clock, rota, url } = await openKeyedServer({ start: false });
  for (let count = 0; count < 3; count += 1) {
    await rota.tasks.submitMany(Array.from({ length: 1_000 }, () => ({ payload: null })));
  }
  const own = await key({});
  const headers = { authorization: `Bearer ${own}`, "last-event-id": "0" };
  const streams = await Promise.all(
    Array.from({ length: 4 }, () => openStream(`${url}/tasks/events`, headers)),
  );
  const seen = streams.map(() => new Set<string>());
  const reading = streams.map(async (stream, index) => {
    for await (const id of idsOf(stream)) seen[index]?.add(id);
  });
  const total = () => seen.reduce((sum, { size }) => sum + size, 0);
  await until(() => clock.pending > 0 && total() > 0, "the bucket to be half empty");
  for (let turns = 0; turns < 20; turns += 1) await settle();
  // Half a bucket is 100 units, and 50 events one, and as many pages more as had begun: of all 12 000.
  expect(total()).toBeLessThan(6_000);
  // The rest is for requests.
  expect((await askWith(own, "/tasks/stats")).status).toBe(200);
  for (let second = 0; second < 20 && total() < 12_000; second += 1) {
    await clock.advance(1_000);
    for (let turns = 0; turns < 10; turns += 1) await settle();
  }
  expect(seen.map(({ size }) => size)).toEqual([3_000, 3_000, 3_000, 3_000]);
  for (const stream of streams) stream.close();
  await Promise.allSettled(reading);
});

async function* idsOf(stream: Awaited<ReturnType<typeof openStream>>): AsyncGenerator<string> {
  for (let frame = await stream.next(); frame !== undefined; frame = await stream.next()) {
    if (frame.event !== undefined && frame.id !== undefined) yield frame.id;
  }
}
