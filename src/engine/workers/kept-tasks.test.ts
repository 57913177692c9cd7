import { expect, test } from "vitest";
import type { TaskRecord } from "../../model/task-record.ts";
import { KeptTasks } from "./kept-tasks.ts";

const MAX = { tasks: 3, bytes: 100 };

function task(seq: number): TaskRecord {
  return { seq } as TaskRecord;
}

function openKept() {
  const kept = new KeptTasks(MAX);
  return {
    kept,
    keep: (token: number, bytes: number) => kept.keep(token, task(token), bytes),
    tokens: () => [1, 2, 3, 4, 5].filter((token) => kept.has(token)),
  };
}

test("the oldest tasks make room for new ones, by number and by size", () => {
  const { keep, tokens } = openKept();
  for (const token of [1, 2, 3, 4]) keep(token, 10);
  expect(tokens()).toEqual([2, 3, 4]);
  keep(5, 85);
  expect(tokens()).toEqual([4, 5]);
});

test("a task that is larger than all room is not kept, and takes none", () => {
  const { keep, tokens } = openKept();
  keep(1, 50);
  keep(2, 101);
  expect(tokens()).toEqual([1]);
});

test("a task that is forgotten, or kept again, gives back its room", () => {
  const { kept, keep, tokens } = openKept();
  keep(1, 50);
  keep(1, 60);
  keep(2, 40);
  expect(tokens()).toEqual([1, 2]);
  expect(kept.get(2)).toEqual(task(2));
  kept.forget(1);
  kept.forget(1);
  keep(3, 60);
  expect(tokens()).toEqual([2, 3]);
  expect(kept.get(1)).toBeUndefined();
});
