import { expect, test, vi } from "vitest";
import { dependencyResult, taskJson } from "./dependency-result.ts";
import type { DependencyResult, Task } from "./task.ts";

const TASK = { taskId: "tsk_1", kind: "custom", payload: { a: ["é", 1] } } as unknown as Task;
const TEXT = '{"found":["é",1.5,null,{"\\u0000":"\\""}]}';

test("a result is parsed when it is looked at, and each time anew", () => {
  const dependency = dependencyResult("tsk_0", TEXT);
  expect(dependency).toEqual({ taskId: "tsk_0", result: JSON.parse(TEXT) });
  expect(dependency.result).not.toBe(dependency.result);
});

test("a task with results is written as JSON.stringify writes it, and no result is parsed for that", () => {
  const omitted: DependencyResult = { taskId: "tsk_2", resultBytes: 5_000_000, omitted: true };
  const own: DependencyResult = { taskId: "tsk_3", result: [1] };
  const task = { ...TASK, dependencies: [dependencyResult("tsk_0", TEXT), omitted, own] };
  const expected = JSON.stringify(task);
  const parse = vi.spyOn(JSON, "parse");
  try {
    expect(taskJson(task)).toBe(expected);
    expect(parse).not.toHaveBeenCalled();
  } finally {
    parse.mockRestore();
  }
});

test.each([[undefined], [[]]])("a task without any is written as ever: %j", (dependencies) => {
  const task = dependencies === undefined ? TASK : { ...TASK, dependencies };
  expect(taskJson(task)).toBe(JSON.stringify(task));
});
