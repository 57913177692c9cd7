import { describe, expect, test } from "vitest";
import type { TaskRow } from "../../../../src/client/index.ts";
import { criticalPath } from "./critical-path.ts";

const at = (seconds: number) => new Date(seconds * 1_000).toISOString();

/** A task that started and ended at these seconds. */
function row(taskId: string, started?: number, ended?: number): TaskRow {
  return {
    taskId,
    createdAt: at(0),
    ...(started !== undefined && { startedAt: at(started) }),
    ...(ended !== undefined && { completedAt: at(ended) }),
  } as TaskRow;
}

/** `a` and `b` before `c`, `c` before `d`; `e` alone. */
const BATCH = {
  createdAt: at(0),
  edges: [
    { from: "a", to: "c" },
    { from: "b", to: "c" },
    { from: "c", to: "d" },
  ],
};

describe("the critical path", () => {
  test("goes back from the task that ended last, over the dependencies that ended last", () => {
    const rows = [row("a", 0, 10), row("b", 0, 25), row("c", 30, 40), row("d", 40, 90), row("e", 0, 80)];
    expect(criticalPath(BATCH, rows, 0)).toEqual({ ids: ["b", "c", "d"], runMs: 85_000, waitMs: 5_000 });
  });

  test("ends with the dependant where both ended in the same millisecond", () => {
    const rows = [row("a", 0, 10), row("b", 0, 25), row("c", 25, 25), row("d", 25, 25)];
    expect(criticalPath(BATCH, rows, 0).ids).toEqual(["b", "c", "d"]);
  });

  test("is a single task where nothing depends on another", () => {
    const rows = [row("x", 1, 4), row("y", 1, 9)];
    expect(criticalPath({ createdAt: at(0), edges: [] }, rows, 0)).toEqual({
      ids: ["y"],
      runMs: 8_000,
      waitMs: 1_000,
    });
  });

  test("leads to what runs while the batch goes on, and ends nowhere without tasks", () => {
    const rows = [row("a", 0, 10), row("b", 20), row("c"), row("d")];
    expect(criticalPath(BATCH, rows, 60_000).ids).toContain("b");
    expect(criticalPath(BATCH, [], 60_000)).toEqual({ ids: [], runMs: 0, waitMs: 0 });
  });

  test("does not go round in a circle", () => {
    const edges = [
      { from: "a", to: "b" },
      { from: "b", to: "a" },
    ];
    expect(criticalPath({ createdAt: at(0), edges }, [row("a", 0, 1), row("b", 1, 2)], 0).ids).toEqual([
      "a",
      "b",
    ]);
  });
});
