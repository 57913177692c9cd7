import { describe, expect, test } from "vitest";
import { makeEngine, newTask, type TaskOverrides } from "../../test/support/engine.ts";
import { hostileValues } from "../../test/support/hostile-values.ts";
import type { Executor, Usage } from "../executors/executor.ts";
import { settle } from "../testing/manual-clock.ts";
import { Latch } from "../testing/signals.ts";
import { addUsage } from "./usage-sum.ts";

describe("what an attempt reports of its cost", () => {
  test("adds up; of the context window the last one counts", () => {
    const reports: Usage[] = [
      { inputTokens: 10, contextWindow: 4_000 },
      { outputTokens: 3 },
      { inputTokens: 0, outputTokens: 4, contextWindow: 8_000 },
      { inputTokens: 5 },
    ];
    let sum: Parameters<typeof addUsage>[0] = null;
    for (const report of reports) {
      const added = addUsage(sum, report);
      if (added.ok) sum = added.sum;
    }
    expect(sum).toMatchObject({ inputTokens: 15, outputTokens: 7, contextWindow: 8_000 });
    expect(addUsage(null, { outputTokens: 1 })).toEqual({
      ok: true,
      sum: { inputTokens: 0, outputTokens: 1, contextTokens: 1 },
    });
  });

  test("says how full the context is as the last call left it", () => {
    const contextAfter = (...reports: Usage[]) => {
      let sum: Parameters<typeof addUsage>[0] = null;
      for (const report of reports) {
        const added = addUsage(sum, report);
        if (added.ok) sum = added.sum;
      }
      return sum?.contextTokens;
    };
    const [first, second] = [
      { inputTokens: 100, outputTokens: 20 },
      { inputTokens: 130, outputTokens: 5 },
    ];
    expect(contextAfter(first)).toBe(120);
    expect(contextAfter(first, second)).toBe(135);
    expect(contextAfter(second, first)).toBe(120);
    expect(contextAfter(first, { contextWindow: 8_000 })).toBe(120);
    expect(contextAfter(first, { inputTokens: -1 })).toBe(120);
    expect(contextAfter({ contextWindow: 8_000 }, { costMicros: 5 })).toBeUndefined();
  });

  test("says how full the context is itself where it knows better, and what it cost", () => {
    const reported = { inputTokens: 100, outputTokens: 20, contextTokens: 45, model: "m", costMicros: 9 };
    const sum = { inputTokens: 100, outputTokens: 20, contextTokens: 45 };
    expect(addUsage(null, reported)).toEqual({ ok: true, sum });
    expect(addUsage(null, { costMicros: -1 })).toMatchObject({ ok: false });
  });

  test("has the window of the agent unless a report names another", () => {
    const windowOf = (...reports: Usage[]) => {
      let sum: Parameters<typeof addUsage>[0] = null;
      for (const report of reports) {
        const added = addUsage(sum, report, 4_000);
        if (added.ok) sum = added.sum;
      }
      return sum?.contextWindow;
    };
    expect(windowOf({ inputTokens: 1 })).toBe(4_000);
    expect(windowOf({ inputTokens: 1, contextWindow: 8_000 })).toBe(8_000);
    expect(windowOf({ inputTokens: 1 }, { contextWindow: 8_000 }, { inputTokens: 1 })).toBe(8_000);
  });

  test.each([
    [{ inputTokens: -1 }, "usage needs a whole number from 0 on as `inputTokens`, not -1"],
    [{ outputTokens: 0.5 }, "usage needs a whole number from 0 on as `outputTokens`, not 0.5"],
    [{ contextWindow: Number.NaN }, "usage needs a whole number from 0 on as `contextWindow`, not NaN"],
    [
      { inputTokens: Number.POSITIVE_INFINITY },
      "usage needs a whole number from 0 on as `inputTokens`, not Infinity",
    ],
    [
      { inputTokens: 1, outputTokens: "7" },
      "usage needs a whole number from 0 on as `outputTokens`, not a value of type string",
    ],
    [{ inputTokens: null }, "usage needs a whole number from 0 on as `inputTokens`, not null"],
    [{ input_tokens: 5 }, "usage needs `inputTokens`, `outputTokens` or `contextWindow`"],
    [{ inputTokens: Number.MAX_SAFE_INTEGER }, "usage adds up to more than 9007199254740991 tokens"],
    [undefined, "usage must be an object, not undefined"],
    [null, "usage must be an object, not null"],
    [12, "usage must be an object, not 12"],
  ])("is refused when it is %j, with a word about why", (report, error) => {
    const before = { inputTokens: 1, outputTokens: 1, contextTokens: 2 };
    expect(addUsage(before, report as Usage)).toEqual({ ok: false, error });
  });
});

describe("what a task cost", () => {
  async function run(executor: Executor, overrides: TaskOverrides = {}) {
    const made = await makeEngine({ executor });
    await made.engine.start();
    await made.engine.intake.add(newTask({ id: "t", retryPolicy: { maxRetries: 0 }, ...overrides }));
    await settle();
    return made;
  }

  test("is on it once it is done", async () => {
    const { task, engine } = await run((_task, { usage }) => {
      usage({ inputTokens: 100, outputTokens: 20 });
      usage({ inputTokens: 1, contextWindow: 8_000 });
    });
    expect((await task("t")).usage).toEqual({ inputTokens: 101, outputTokens: 20, contextWindow: 8_000 });
    expect([...engine.metrics.of("default").tokens()]).toEqual([
      ["a", { input: 101, output: 20, costMicros: 0 }],
    ]);
  });

  test("is written with how full the context was, of this attempt alone", async () => {
    const executor: Executor = (_task, { usage }) => {
      usage({ inputTokens: 100, outputTokens: 20, contextWindow: 8_000 });
      usage({ inputTokens: 125, outputTokens: 5 });
      throw new Error("no");
    };
    const { clock, exchanges } = await run(executor, { retryPolicy: { maxRetries: 1 } });
    await clock.advance(60_000);
    const usage = { inputTokens: 225, outputTokens: 25, contextTokens: 130, contextWindow: 8_000 };
    const finishes = exchanges.flatMap((exchange) => exchange.finishes);
    expect(finishes.map((finish) => finish.usage)).toEqual([usage, usage]);
  });

  test("is of all its attempts, those that failed included", async () => {
    const executor: Executor = (_task, { usage }) => {
      usage({ inputTokens: 10 });
      throw new Error("no");
    };
    const { task, clock } = await run(executor, { retryPolicy: { maxRetries: 2 } });
    expect(await task("t")).toMatchObject({ state: "delayed", usage: { inputTokens: 10, outputTokens: 0 } });
    await clock.advance(60_000);
    expect(await task("t")).toMatchObject({ state: "failed", usage: { inputTokens: 30, outputTokens: 0 } });
  });

  test("is unknown when no attempt reported it", async () => {
    const { task, exchanges } = await run(() => 1);
    expect((await task("t")).usage).toBeNull();
    expect(exchanges.flatMap(({ finishes }) => finishes)[0]).not.toHaveProperty("usage");
  });

  test("does not grow after its attempt is over", async () => {
    const executor: Executor = async (_task, { usage, signal }) => {
      usage({ inputTokens: 1 });
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      usage({ inputTokens: 500 });
      late.open();
    };
    const late = new Latch();
    const { task, clock, engine } = await run(executor, { timeoutMs: 1_000 });
    await clock.advance(1_000);
    await late.opened;
    await settle();
    expect(await task("t")).toMatchObject({ state: "failed", usage: { inputTokens: 1, outputTokens: 0 } });
    expect([...engine.metrics.of("default").tokens()]).toEqual([
      ["a", { input: 1, output: 0, costMicros: 0 }],
    ]);
  });

  test("is as it was after a report that is wrong, which is logged", async () => {
    const { task, log, engine } = await run((_task, { usage }) => {
      usage({ inputTokens: 5 });
      usage({ inputTokens: 7, outputTokens: -1 });
    });
    expect((await task("t")).usage).toEqual({ inputTokens: 5, outputTokens: 0 });
    expect([...engine.metrics.of("default").tokens()]).toEqual([
      ["a", { input: 5, output: 0, costMicros: 0 }],
    ]);
    expect(log.lines.filter(({ level }) => level === "warn")).toMatchObject([
      {
        fields: { taskId: "t", attempt: 1 },
        message:
          "usage needs a whole number from 0 on as `outputTokens`, not -1; nothing of this report is counted",
      },
    ]);
  });

  test.each(hostileValues())("fails no task when it is reported as %s", async (_what, value) => {
    const { states } = await run((_task, { usage }) => {
      try {
        usage(value as Usage);
      } catch {
        // What an object of its own throws when it is read is the executor's to catch.
      }
    });
    expect(await states()).toEqual({ done: 1 });
  });
});
