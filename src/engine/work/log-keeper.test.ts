import { describe, expect, test } from "vitest";
import { type EngineParams, makeEngine, newTask, ROOMY } from "../../../test/support/engine.ts";
import { away } from "../../../test/support/storages.ts";
import { TASK_LOG_MAX } from "../../model/task-log.ts";
import { settle } from "../../testing/manual-clock.ts";
import { Latch } from "../../testing/signals.ts";

const read = { tenant: "default", taskId: "a", after: 0, limit: 10_000 };

async function makeLogging(params: EngineParams = {}) {
  let appends = 0;
  const made = await makeEngine({
    ...params,
    meddler: {
      ...params.meddler,
      before: (call) => {
        if (call.operation === "logs.append") appends += 1;
        return params.meddler?.before?.(call);
      },
    },
  });
  const { storage } = made;
  return {
    ...made,
    appends: () => appends,
    submit: (...ids: string[]) =>
      storage.tasks.insert({ tasks: ids.map((id) => newTask({ id })), limits: ROOMY }),
    texts: async (taskId = "a") => {
      const page = await storage.logs.read({ ...read, taskId });
      return page?.lines.map(({ level, text }) => `${level} ${text}`);
    },
  };
}

describe("what executors log", () => {
  test("is kept with the task, with its fields, in one write for many lines", async () => {
    const { engine, clock, submit, texts, appends, log } = await makeLogging({
      executor: (_task, { log }) => {
        log.info({}, "begins");
        log.child({ part: 1 }).warn({ pages: 3, big: 10n, error: new Error("no") }, "reads");
        log.error({}, "nul \0");
      },
    });
    await submit("a", "b");
    await engine.start();
    await settle();
    await clock.advance(500);
    const lines = ["info begins", 'warn reads {"pages":3,"big":"10","error":"no"}', "error nul \u{fffd}"];
    expect(await texts()).toEqual(lines);
    expect(await texts("b")).toEqual(lines);
    expect(appends()).toBe(1);
    expect(log.messages("info")).toContain("begins");
  });

  test("is written soon after an attempt has ended, and in half a second while it runs", async () => {
    const running = new Latch();
    const { engine, clock, submit, texts } = await makeLogging({
      executor: async ({ taskId }, { log }) => {
        log.info({}, "begins");
        if (taskId === "a") await running.opened;
      },
    });
    await submit("a", "b");
    await engine.start();
    await settle();
    await clock.advance(20);
    expect(await texts("b")).toEqual(["info begins"]);
    expect(await texts("a")).toEqual([]);
    await clock.advance(480);
    expect(await texts("a")).toEqual(["info begins"]);
    running.open();
  });

  test.each([
    ["is done", () => 1],
    [
      "fails",
      () => {
        throw new Error("no");
      },
    ],
  ])("costs nothing where a task %s that logs nothing", async (_how, executor) => {
    const { engine, clock, submit, appends } = await makeLogging({ executor });
    await submit("a");
    await engine.start();
    await clock.advance(120_000);
    expect(appends()).toBe(0);
  });

  test("never fails its task, with any fields", async () => {
    const cyclic: Record<string, unknown> = {};
    cyclic["self"] = cyclic;
    const { engine, clock, submit, texts, task } = await makeLogging({
      executor: (_task, { log }) => {
        log.info(cyclic, "cyclic");
        log.info(undefined as never, "none");
        log.info("alone" as never, undefined as never);
      },
    });
    await submit("a");
    await engine.start();
    await settle();
    await clock.advance(500);
    expect(await texts()).toEqual(["info cyclic", "info none", "info alone"]);
    expect((await task("a")).state).toBe("done");
  });

  test("is written once, although the storage was unavailable and responses were lost", async () => {
    let [isAway, isLost] = [true, true];
    const more = new Latch();
    const { engine, clock, submit, texts } = await makeLogging({
      executor: async (_task, { log }) => {
        log.info({}, "one");
        await more.opened;
        log.info({}, "two");
      },
      meddler: {
        before: ({ operation }) => {
          if (isAway && operation === "logs.append") throw away();
        },
        after: ({ operation }) => {
          if (isLost && operation === "logs.append") throw away();
        },
      },
    });
    await submit("a");
    await engine.start();
    await settle();
    await clock.advance(1_000);
    isAway = false;
    await clock.advance(6_000);
    more.open();
    await settle();
    isLost = false;
    await clock.advance(6_000);
    expect(await texts()).toEqual(["info one", "info two"]);
  });

  test("of a loop is bounded: the last lines are kept, and writes become rare", async () => {
    const stop = new Latch();
    let isRunning = true;
    const { engine, clock, submit, storage, appends } = await makeLogging({
      executor: async (_task, { log, signal }) => {
        for (let n = 1; isRunning && !signal.aborted; n += 1) {
          log.info({}, `${n} ${"x".repeat(100)}`);
          if (n % 1_000 === 0) await new Promise<void>((resolve) => clock.setTimer(100, resolve));
        }
        await stop.opened;
      },
    });
    await submit("a");
    await engine.start();
    await settle();
    await clock.advance(10_000);
    const before = appends();
    await clock.advance(20_000);
    expect(appends() - before).toBeLessThan(30);
    isRunning = false;
    await clock.advance(30_000);
    const page = await storage.logs.read(read);
    const last = page?.lines.at(-1)?.n ?? 0;
    expect(last).toBeGreaterThan(100_000);
    expect(page?.lines.length).toBeGreaterThan(1_000);
    expect(page?.lines.length).toBeLessThanOrEqual(TASK_LOG_MAX.lines);
    expect(page?.dropped).toBe(last - (page?.lines.length ?? 0));
    stop.open();
  });

  test("cuts long lines", async () => {
    const { engine, clock, submit, texts } = await makeLogging({
      executor: (_task, { log }) => log.info({}, "x".repeat(100_000)),
    });
    await submit("a");
    await engine.start();
    await settle();
    await clock.advance(500);
    const [line] = (await texts()) ?? [];
    expect(Buffer.byteLength(line ?? "")).toBeLessThanOrEqual(TASK_LOG_MAX.lineBytes + "info ".length);
    expect(line).toMatch(/…$/);
  });

  test("last is written before a drain ends", async () => {
    const { engine, submit, texts } = await makeLogging({
      executor: (_task, { log }) => log.info({}, "short"),
    });
    await submit("a");
    await engine.start();
    await settle();
    await engine.drain(0);
    expect(await texts()).toEqual(["info short"]);
  });
});
