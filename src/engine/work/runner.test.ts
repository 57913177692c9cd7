import { describe, expect, test } from "vitest";
import { hostileValues } from "../../../test/support/hostile-values.ts";
import { unboundedMemory } from "../../../test/support/memory.ts";
import { RecordingLog } from "../../../test/support/recording-log.ts";
import { claimedTask } from "../../../test/support/records.ts";
import { PermanentError } from "../../executors/errors.ts";
import type { Executor, ExecutorContext } from "../../executors/executor.ts";
import type { Outcome } from "../../model/outcome.ts";
import { ManualClock, settle } from "../../testing/manual-clock.ts";
import { Latch } from "../../testing/signals.ts";
import { Runner } from "./runner.ts";

function makeRunner(executor: Executor | undefined) {
  const clock = new ManualClock();
  const log = new RecordingLog();
  const outcomes: Outcome[] = [];
  const fenced: number[] = [];
  const progress: unknown[] = [];
  const runner = new Runner({
    clock,
    storageNow: () => clock.now(),
    log,
    findExecutor: () => executor,
    memory: unboundedMemory(),
    readDependencies: async () => ({ results: [], bytes: 0 }),
    onOutcome: (_attempt, outcome) => outcomes.push(outcome),
    onFenced: ({ token }) => fenced.push(token),
    onProgress: (_attempt, data) => progress.push(data),
  });
  return { runner, clock, log, outcomes, fenced, progress };
}

describe("what the executor does decides:", () => {
  test("the value that it returns is the result", async () => {
    const { runner, outcomes } = makeRunner(async (task) => ({ got: task.payload }));
    runner.run(claimedTask({ payload: "x" }));
    await settle();
    expect(outcomes).toEqual([{ kind: "done", result: { got: "x" } }]);
    expect(runner.size).toBe(0);
  });

  test("a value without a promise is a result too, and no value is null", async () => {
    const { runner, outcomes } = makeRunner((task) => task.payload ?? undefined);
    runner.run(claimedTask({ payload: 7 }));
    runner.run(claimedTask());
    await settle();
    expect(outcomes).toEqual([
      { kind: "done", result: 7 },
      { kind: "done", result: null },
    ]);
  });

  test.each([
    ["throws", () => Promise.reject(new Error("late"))],
    [
      "throws at once",
      () => {
        throw new Error("late");
      },
    ],
    ["throws a text", () => Promise.reject("late")],
  ])("one that %s fails its attempt", async (_how, executor) => {
    const { runner, outcomes } = makeRunner(executor);
    runner.run(claimedTask());
    await settle();
    expect(outcomes).toEqual([{ kind: "failed", error: "late", permanent: false }]);
  });

  test.each(hostileValues())("%s, thrown, fails its attempt", async (_what, thrown) => {
    const { runner, outcomes } = makeRunner(async () => {
      throw thrown;
    });
    runner.run(claimedTask());
    await settle();
    expect(outcomes).toMatchObject([{ kind: "failed", permanent: false }]);
    expect(runner.size).toBe(0);
  });

  test.each(hostileValues())("%s, returned, ends its attempt", async (_what, value) => {
    const { runner, outcomes } = makeRunner(() => value);
    runner.run(claimedTask());
    await settle();
    expect(outcomes).toHaveLength(1);
    expect(runner.size).toBe(0);
  });

  test("a permanent error is not retried", async () => {
    const { runner, outcomes } = makeRunner(() => {
      throw new PermanentError("never");
    });
    runner.run(claimedTask());
    await settle();
    expect(outcomes).toEqual([{ kind: "failed", error: "never", permanent: true }]);
  });

  test("a result that is not JSON fails for good", async () => {
    const { runner, outcomes } = makeRunner(async () => ({ big: 1n }));
    runner.run(claimedTask());
    await settle();
    expect(outcomes).toEqual([
      { kind: "failed", error: "result is not JSON: Do not know how to serialize a BigInt", permanent: true },
    ]);
  });

  test("a result of more than a mebibyte fails for good", async () => {
    const { runner, outcomes } = makeRunner(async () => "x".repeat(2_000_000));
    runner.run(claimedTask());
    await settle();
    expect(outcomes).toEqual([
      {
        kind: "failed",
        error: "result is too large: 2000002 bytes of JSON, at most 1048576 are kept",
        permanent: true,
      },
    ]);
  });
});

test("an outcome that could not be handled is logged, and ends no process", async () => {
  const clock = new ManualClock();
  const log = new RecordingLog();
  const runner = new Runner({
    clock,
    storageNow: () => clock.now(),
    log,
    findExecutor: () => () => 1,
    memory: unboundedMemory(),
    readDependencies: async () => ({ results: [], bytes: 0 }),
    onOutcome: () => {
      throw new Error("our own fault");
    },
    onFenced: () => {},
    onProgress: () => {},
  });
  runner.run(claimedTask());
  await settle();
  expect(log.messages("error")).toEqual(["could not store the outcome of an attempt"]);
});

test("a task that this node has no executor for goes back, for a node that has one", () => {
  const { runner, outcomes } = makeRunner(undefined);
  runner.run(claimedTask({ agent: "unknown" }));
  const error = 'this node has no executor for agent "unknown" any more';
  expect(outcomes).toEqual([{ kind: "not_executed", error }]);
});

describe("time decides when the executor does not:", () => {
  test("a timeout counts from the start of the attempt", async () => {
    const { runner, clock, outcomes } = makeRunner(() => new Promise(() => {}));
    await clock.advance(10_000);
    runner.run(claimedTask({ timeoutMs: 5_000 }));
    await clock.advance(4_999);
    expect(outcomes).toEqual([]);
    await clock.advance(1);
    expect(outcomes).toEqual([{ kind: "failed", error: "timed out after 5000 ms", permanent: false }]);
    expect(runner.size).toBe(0);
  });

  test("a deadline is for good", async () => {
    const { runner, clock, outcomes } = makeRunner(() => new Promise(() => {}));
    runner.run(claimedTask({ deadline: clock.now() + 3_000, timeoutMs: 60_000 }));
    await clock.advance(3_000);
    expect(outcomes).toEqual([{ kind: "deadline", error: "deadline exceeded" }]);
  });

  test("each of many attempts ends at its own moment", async () => {
    const { runner, clock, outcomes } = makeRunner(() => new Promise(() => {}));
    for (const timeoutMs of [3_000, 1_000, 2_000]) runner.run(claimedTask({ timeoutMs }));
    expect(clock.pending).toBe(1);
    for (const ended of [1, 2, 3]) {
      await clock.advance(1_000);
      expect(outcomes).toHaveLength(ended);
    }
  });

  test("a clock set forward ends what is past its deadline within seconds; timeouts stay as they are", async () => {
    const { runner, clock, outcomes } = makeRunner(() => new Promise(() => {}));
    runner.run(claimedTask({ deadline: clock.now() + 3_600_000 }));
    runner.run(claimedTask({ timeoutMs: 600_000 }));
    clock.set(clock.now() + 7_200_000);
    await clock.advance(5_000);
    expect(outcomes).toEqual([{ kind: "deadline", error: "deadline exceeded" }]);
    expect(runner.size).toBe(1);
  });

  test("a clock set back gives no attempt more time than its timeout", async () => {
    const { runner, clock, outcomes } = makeRunner(() => new Promise(() => {}));
    runner.run(claimedTask({ timeoutMs: 5_000, deadline: clock.now() + 10_000 }));
    clock.set(clock.now() - 3_600_000);
    await clock.advance(5_000);
    expect(outcomes).toEqual([{ kind: "failed", error: "timed out after 5000 ms", permanent: false }]);
  });

  test("no timer is left once nothing runs", async () => {
    const { runner, clock } = makeRunner(async () => {});
    for (let i = 0; i < 100; i++) runner.run(claimedTask({ timeoutMs: 5_000 }));
    await clock.advance(5_000);
    expect(clock.pending).toBe(0);
  });
});

describe("an executor that is aborted", () => {
  function makeListener() {
    const latch = new Latch<unknown>();
    let context: ExecutorContext | undefined;
    const made = makeRunner((_task, given) => {
      context = given;
      return latch.opened;
    });
    return { ...made, latch, context: () => context as ExecutorContext };
  }

  test("gets the reason through its signal", async () => {
    const { runner, context, fenced } = makeListener();
    const claimed = claimedTask();
    runner.run(claimed);
    const { signal } = context();
    expect(signal.aborted).toBe(false);
    runner.fence([claimed.token], "cancelled");
    expect(signal.aborted).toBe(true);
    expect(signal.reason).toMatchObject({ name: "AbortError", message: "cancelled" });
    expect(fenced).toEqual([claimed.token]);
  });

  test("gets it also if it reads the signal only afterwards", () => {
    const { runner, context } = makeListener();
    const claimed = claimedTask();
    runner.run(claimed);
    runner.fence([claimed.token], "cancelled");
    expect(context().signal.aborted).toBe(true);
  });

  test("frees its slot at once, and its late result changes nothing", async () => {
    const { runner, latch, outcomes } = makeListener();
    const claimed = claimedTask();
    runner.run(claimed);
    runner.fence([claimed.token], "cancelled");
    expect(runner.size).toBe(0);
    latch.open("too late");
    await settle();
    runner.fence([claimed.token], "cancelled again");
    expect(outcomes).toEqual([]);
  });

  test("may go on logging and reporting, to no effect on the task", async () => {
    const { runner, context, clock, progress, log } = makeListener();
    runner.run(claimedTask({ timeoutMs: 1_000 }));
    context().progress("before");
    await clock.advance(1_000);
    context().progress("after");
    context().usage({ inputTokens: 1 });
    context().log.info({}, "cleaning up");
    expect(progress).toEqual(["before"]);
    expect(log.messages("info")).toEqual(["cleaning up"]);
  });

  test("while its large result waits to be checked ends by itself, and ends no process", async () => {
    const returned = new Latch();
    const { runner, fenced, outcomes } = makeRunner(async () => {
      returned.open();
      return "x".repeat(100_000);
    });
    runner.run(claimedTask());
    await returned.opened;
    const [token = 0] = runner.tokens();
    runner.fence([token], "cancelled");
    await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));
    expect({ fenced, outcomes }).toEqual({ fenced: [token], outcomes: [] });
  });

  test("is named in the log, once, if it still runs five seconds later", async () => {
    const { runner, clock, log } = makeListener();
    runner.run(claimedTask({ id: "tsk_deaf", timeoutMs: 1_000 }));
    await clock.advance(5_999);
    expect(log.messages("warn")).toEqual([]);
    await clock.advance(1);
    await clock.advance(60_000);
    expect(log.messages("warn")).toEqual(["still runs 5000 ms after it was aborted; its result is ignored"]);
    expect(log.lines[0]?.fields).toMatchObject({ taskId: "tsk_deaf", attempt: 1 });
    expect(clock.pending).toBe(0);
  });

  test("is not named if it returned in time", async () => {
    const { runner, clock, latch, log } = makeListener();
    runner.run(claimedTask({ timeoutMs: 1_000 }));
    await clock.advance(2_000);
    latch.open(null);
    await clock.advance(60_000);
    expect(log.messages("warn")).toEqual([]);
  });

  test("that throws because of it fails nothing a second time", async () => {
    const { runner, clock, outcomes } = makeRunner(
      (_task, { signal }) =>
        new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason))),
    );
    runner.run(claimedTask({ timeoutMs: 1_000 }));
    await clock.advance(1_000);
    expect(outcomes).toEqual([{ kind: "failed", error: "timed out after 1000 ms", permanent: false }]);
  });
});

test("interrupting stops everything and hands it back", async () => {
  const signals: AbortSignal[] = [];
  const { runner, outcomes } = makeRunner((_task, { signal }) => {
    signals.push(signal);
    return new Promise(() => {});
  });
  runner.run(claimedTask());
  runner.run(claimedTask());
  runner.interruptAll("interrupted by shutdown");
  expect(outcomes).toEqual(Array(2).fill({ kind: "interrupted", error: "interrupted by shutdown" }));
  expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
  expect(runner.size).toBe(0);
});

test("the functions of the context work on their own", async () => {
  const { runner, progress } = makeRunner(async (_task, { progress: report, usage, log }) => {
    report(1);
    usage({ outputTokens: 2 });
    log.debug({}, "fine");
  });
  runner.run(claimedTask());
  await settle();
  expect(progress).toEqual([1]);
});

describe("what a task holds in memory counts", () => {
  function counting(executor: Executor | undefined, dependencyBytes = 0) {
    const clock = new ManualClock();
    const memory = unboundedMemory();
    const runner = new Runner({
      clock,
      storageNow: () => clock.now(),
      log: new RecordingLog(),
      memory,
      findExecutor: () => executor,
      readDependencies: async () => ({ results: [], bytes: dependencyBytes }),
      onOutcome: () => {},
      onFenced: () => {},
      onProgress: () => {},
    });
    return { runner, clock, memory };
  }

  test("from its start to the return of its executor", async () => {
    const latch = new Latch();
    const { runner, memory } = counting(() => latch.opened);
    runner.run({ ...claimedTask(), bytes: 100 });
    runner.run({ ...claimedTask(), bytes: 20 });
    await settle();
    expect(memory.held).toBe(120);
    latch.open();
    await settle();
    expect(memory.held).toBe(0);
  });

  test("also when it fails, and when there is no executor", async () => {
    const { runner, memory } = counting(() => {
      throw new Error("no");
    });
    runner.run({ ...claimedTask(), bytes: 100 });
    const without = counting(undefined);
    without.runner.run({ ...claimedTask(), bytes: 100 });
    await settle();
    expect([memory.held, without.memory.held]).toEqual([0, 0]);
  });

  test("with what its executor says it holds, until that returns, though it ignores its signal", async () => {
    const latch = new Latch();
    const { runner, clock, memory } = counting(async (_task, { holds }) => {
      holds(50);
      holds(Number.NaN);
      holds(-7);
      await latch.opened;
      holds(3);
    });
    const claimed = claimedTask({ timeoutMs: 1_000 });
    runner.run({ ...claimed, bytes: 100 });
    await settle();
    await clock.advance(1_000);
    expect([runner.size, memory.held]).toEqual([0, 150]);
    await clock.advance(60_000);
    expect(memory.held).toBe(150);
    latch.open();
    await settle();
    expect(memory.held).toBe(0);
  });

  test("with the results handed on: as much as they may take, then as much as they do", async () => {
    const latch = new Latch();
    const { runner, memory } = counting(() => latch.opened, 70);
    const { task, ...claimed } = claimedTask();
    const dependsOn = ["a", "b"];
    runner.run({ ...claimed, bytes: 100, task: { ...task, spec: { ...task.spec, dependsOn } } });
    expect(memory.held).toBe(100 + 2 * 1_048_576);
    await settle();
    expect(memory.held).toBe(170);
    latch.open();
    await settle();
    expect(memory.held).toBe(0);
  });
});
