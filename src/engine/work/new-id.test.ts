import { expect, test } from "vitest";
import { ManualClock } from "../../testing/manual-clock.ts";
import { idMaker, nodeIdMaker } from "./new-id.ts";

test("ids carry their prefix, sort by the time they were made and never repeat", async () => {
  const clock = new ManualClock();
  const newId = idMaker("tsk_", clock);
  const ids: string[] = [];
  for (let count = 0; count < 3_000; count += 1) {
    if (count % 100 === 0) await clock.advance(1);
    ids.push(newId());
  }
  expect(ids.every((id) => /^tsk_[0-9a-f]{32}$/.test(id))).toBe(true);
  expect(ids.toSorted()).toEqual(ids);
  expect(new Set(ids).size).toBe(ids.length);
});

test("two makers do not make the same ids, not even at the same moment", () => {
  const clock = new ManualClock();
  const makers = [idMaker("", clock), idMaker("", clock)];
  const ids = makers.flatMap((newId) => Array.from({ length: 100 }, newId));
  expect(new Set(ids).size).toBe(200);
});

test("a membership is named for its machine and its process, and never as another one", () => {
  const newId = nodeIdMaker("host", 42);
  const ids = Array.from({ length: 1_000 }, newId);
  expect(ids.every((id) => /^host-42-[0-9a-f]{12}$/.test(id))).toBe(true);
  expect(new Set(ids).size).toBe(ids.length);
});
