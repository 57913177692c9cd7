import { describe, expect, test } from "vitest";
import { resolveDependencies } from "./dependency-graph.ts";

function tasks(graph: Readonly<Record<string, readonly string[]>>) {
  return Object.entries(graph).map(([key, dependsOn]) => ({ id: `tsk_${key}`, key, dependsOn }));
}

describe("dependencies", () => {
  test("are found by key and by id, each once", () => {
    const graph = resolveDependencies(tasks({ a: [], b: ["a", "tsk_elsewhere", "a"], c: ["b", "tsk_b"] }));
    expect(graph).toEqual({
      dependsOn: [[], ["tsk_a", "tsk_elsewhere"], ["tsk_b"]],
      order: [0, 1, 2],
    });
  });

  test("put each task after its dependencies, and keep the given order otherwise", () => {
    expect(resolveDependencies(tasks({ a: ["d"], b: [], c: ["a"], d: [] })).order).toEqual([3, 0, 1, 2]);
  });

  test("of a chain of ten thousand are found without running out of stack", () => {
    const chain = Object.fromEntries(
      Array.from({ length: 10_000 }, (_, n) => [`n${n}`, n === 9_999 ? [] : [`n${n + 1}`]]),
    );
    expect(resolveDependencies(tasks(chain)).order.slice(0, 3)).toEqual([9_999, 9_998, 9_997]);
  });

  test.each([
    [{ a: ["a"] }, "a → a"],
    [{ a: ["b"], b: ["a"] }, "a → b → a"],
    [{ x: ["a"], a: ["b"], b: ["c"], c: ["a", "y"], y: [] }, "a → b → c → a"],
  ])("in a cycle are refused with the cycle: %j", (graph, way) => {
    expect(() => resolveDependencies(tasks(graph as never))).toThrow(
      expect.objectContaining({ code: "dependency_cycle", message: expect.stringContaining(`: ${way}`) }),
    );
  });

  test.each([
    [{ a: ["bb"], b: [] }, "unknown_key", 'names "bb"'],
    [{ first: [], b: ["frist"] }, "unknown_key", 'did you mean "first"?'],
  ])("with unknown names are refused: %j", (graph, code, message) => {
    expect(() => resolveDependencies(tasks(graph as never))).toThrow(
      expect.objectContaining({ code, message: expect.stringContaining(message) }),
    );
  });

  test("on a key that two tasks have are refused", () => {
    const twice = [...tasks({ a: [] }), ...tasks({ a: [] })];
    expect(() => resolveDependencies(twice)).toThrow('`key` "a" is also that of tasks[0]');
  });

  test("of a single task are ids only", () => {
    const alone = { id: "tsk_1", key: undefined, dependsOn: ["first"] };
    expect(() => resolveDependencies([alone])).toThrow("write the id of a task, like tsk_…");
  });
});
