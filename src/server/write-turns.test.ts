import { expect, test } from "vitest";
import { BYTES_PER_TURN, FRAMES_PER_TURN, WriteTurns } from "./write-turns.ts";

/** A stream whose reader takes everything at once. */
async function write(
  turns: WriteTurns,
  { key, frames, bytes = 1 }: { key: string | null; frames: number; bytes?: number },
  onFrame: () => void,
): Promise<void> {
  for (let count = 0; count < frames; count += 1) {
    if (turns.isOver) await turns.next(key);
    turns.wrote(bytes);
    onFrame();
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

test("bounds the frames of all streams in one turn of the event loop", async () => {
  const turns = new WriteTurns();
  let frames = 0;
  const streams = Array.from({ length: 50 }, (_, index) =>
    write(turns, { key: `key-${index % 5}`, frames: 100 }, () => frames++),
  );
  // Two turns may end between two looks.
  expect(await mostInOneTurn(Promise.all(streams), () => frames)).toBeLessThanOrEqual(2 * FRAMES_PER_TURN);
  expect(frames).toBe(5_000);
});

test("bounds their bytes, but for the last frame", async () => {
  const turns = new WriteTurns();
  const bytes = 400_000;
  let written = 0;
  const streams = Array.from({ length: 10 }, () =>
    write(turns, { key: null, frames: 5, bytes }, () => {
      written += bytes;
    }),
  );
  expect(await mostInOneTurn(Promise.all(streams), () => written)).toBeLessThanOrEqual(
    2 * (BYTES_PER_TURN + bytes),
  );
  expect(written).toBe(50 * bytes);
});

test("takes turns between keys: a thousand streams of one do not hold up the one of another", async () => {
  const turns = new WriteTurns();
  let many = 0;
  const all = Array.from({ length: 1_000 }, () => write(turns, { key: "many", frames: 10 }, () => many++));
  await write(turns, { key: "one", frames: 10 }, () => {});
  expect(many).toBeLessThan(1_000);
  await Promise.all(all);
  expect(many).toBe(10_000);
});
