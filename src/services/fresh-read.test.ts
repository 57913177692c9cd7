import { expect, test } from "vitest";
import { Latch } from "../testing/signals.ts";
import { FreshRead } from "./fresh-read.ts";

test("callers that ask while a read is under way share the next one", async () => {
  const latches = [new Latch(), new Latch()];
  let reads = 0;
  const fresh = new FreshRead(async () => {
    const latch = latches[reads];
    reads += 1;
    await latch?.opened;
  });
  const first = fresh.now();
  await new Promise(setImmediate);
  const later = [fresh.now(), fresh.now()];
  expect([reads, later[0] === later[1]]).toEqual([1, true]);
  latches[0]?.open();
  await first;
  await new Promise(setImmediate);
  expect(reads).toBe(2);
  latches[1]?.open();
  await Promise.all(later);
  expect(reads).toBe(2);
});

test("a read that fails rejects for its waiting callers, and for no later ones", async () => {
  let reads = 0;
  const fresh = new FreshRead(async () => {
    reads += 1;
    if (reads === 1) throw new Error("away");
  });
  await expect(fresh.now()).rejects.toThrow("away");
  await fresh.now();
  expect(reads).toBe(2);
});
