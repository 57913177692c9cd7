import { expect, test } from "vitest";
import { TurnBudget } from "./turn-budget.ts";

const PER_TURN = { pieces: 100, bytes: 524_288 };

/** Work that never waits for anything else. */
async function work(
  turns: TurnBudget<string>,
  { owner, pieces, bytes = 1 }: { owner: string; pieces: number; bytes?: number },
  onPiece: () => void,
): Promise<void> {
  for (let count = 0; count < pieces; count += 1) {
    if (turns.isOver) await turns.next(owner);
    turns.used(bytes);
    onPiece();
    await null;
  }
}

/** The most that was counted between two turns of the event loop. */
async function mostInOneTurn(until: Promise<unknown>, counted: () => number): Promise<number> {
  let most = 0;
  let seen = counted();
  let over = false;
  void until.finally(() => {
    over = true;
  });
  while (!over) {
    await new Promise((resolve) => setImmediate(resolve));
    most = Math.max(most, counted() - seen);
    seen = counted();
  }
  return most;
}

test("bounds the pieces of all work in one turn of the event loop", async () => {
  const turns = new TurnBudget<string>(PER_TURN);
  let pieces = 0;
  const all = Array.from({ length: 50 }, (_, index) =>
    work(turns, { owner: `owner-${index % 5}`, pieces: 100 }, () => pieces++),
  );
  // Two turns may end between two looks.
  expect(await mostInOneTurn(Promise.all(all), () => pieces)).toBeLessThanOrEqual(2 * PER_TURN.pieces);
  expect(pieces).toBe(5_000);
});

test("bounds their bytes, but for the last piece", async () => {
  const turns = new TurnBudget<string>(PER_TURN);
  const bytes = 400_000;
  let written = 0;
  const all = Array.from({ length: 10 }, () =>
    work(turns, { owner: "all", pieces: 5, bytes }, () => {
      written += bytes;
    }),
  );
  expect(await mostInOneTurn(Promise.all(all), () => written)).toBeLessThanOrEqual(
    2 * (PER_TURN.bytes + bytes),
  );
  expect(written).toBe(50 * bytes);
});

test("takes turns between owners: a thousand of one do not hold up the one of another", async () => {
  const turns = new TurnBudget<string>(PER_TURN);
  let many = 0;
  const all = Array.from({ length: 1_000 }, () => work(turns, { owner: "many", pieces: 10 }, () => many++));
  await work(turns, { owner: "one", pieces: 10 }, () => {});
  expect(many).toBeLessThan(1_000);
  await Promise.all(all);
  expect(many).toBe(10_000);
});

test("begins no more than fits in a turn before what has begun has ended", async () => {
  const turns = new TurnBudget<string>(PER_TURN);
  let begun = 0;
  const ends: (() => void)[] = [];
  const read = () =>
    turns.during("all", 200_000, () => {
      begun += 1;
      return new Promise<void>((resolve) => ends.push(resolve));
    });
  const all = Promise.all(Array.from({ length: 7 }, read));
  const someTurns = () => new Promise((resolve) => setTimeout(resolve, 5));
  await someTurns();
  expect(begun).toBe(3);
  for (const end of ends.splice(0, 2)) end();
  await someTurns();
  expect(begun).toBe(3);
  ends.shift()?.();
  await someTurns();
  expect(begun).toBe(6);
  while (begun < 7 || ends.length > 0) {
    ends.shift()?.();
    await someTurns();
  }
  await all;
});

test("goes on after a piece of work that failed", async () => {
  const turns = new TurnBudget<string>({ pieces: 1, bytes: 1 });
  const failing = expect(turns.during("all", 1, () => Promise.reject(new Error("away")))).rejects.toThrow(
    "away",
  );
  expect(await turns.during("all", 1, async () => "read")).toBe("read");
  await failing;
});

test.each([
  ["for a multiple of its duration", 5, 15, Number.POSITIVE_INFINITY],
  ["for a bounded time", 200, 25, 3 * 200 - 1],
])("pauses after a turn that was used up, %s", async (_, busyMs, restMs, restMsMax) => {
  const turns = new TurnBudget<string>({ pieces: 1, bytes: 1, rest: 3 });
  await turns.next("all");
  let shortestMs = Number.POSITIVE_INFINITY;
  // A busy machine wakes no timer in time: the shortest of three pauses is the one that was asked for.
  for (let tries = 0; tries < 3; tries += 1) {
    turns.used(1);
    const begunAt = performance.now();
    while (performance.now() < begunAt + busyMs);
    const endedAt = performance.now();
    await turns.next("all");
    const pausedMs = performance.now() - endedAt;
    expect(pausedMs).toBeGreaterThanOrEqual(restMs - 1);
    shortestMs = Math.min(shortestMs, pausedMs);
  }
  expect(shortestMs).toBeLessThan(restMsMax);
});
