import { expect, test } from "vitest";
import { treeRows } from "./tree-rows.ts";

test("each task is below its parent, and one whose parent is not kept begins a tree of its own", () => {
  const task = (taskId: string, parentTaskId?: string) => ({ taskId, ...(parentTaskId && { parentTaskId }) });
  const tasks = [task("root"), task("a", "root"), task("b", "root"), task("a1", "a"), task("lost", "gone")];
  expect(treeRows(tasks).map(({ task, level }) => `${level} ${task.taskId}`)).toEqual([
    "0 root",
    "1 a",
    "2 a1",
    "1 b",
    "0 lost",
  ]);
  expect(treeRows([])).toEqual([]);
});
