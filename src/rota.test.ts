import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { serve } from "../test/support/http-server.ts";
import { openTestRota } from "../test/support/rota.ts";
import { asSharedStorage, away, openMemory } from "../test/support/storages.ts";
import { createRota, type Executor, PermanentError, type RotaEvent } from "./index.ts";
import { createTestRota, Latch, ManualClock, nextEvent, settle, until } from "./testing/index.ts";

const endless: Executor = () => new Promise(() => {});

describe("embedding", () => {
  test("takes a few lines, on a file", async () => {
    const folder = mkdtempSync(join(tmpdir(), "rota-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const storage = `sqlite:${join(folder, "rota.db")}`;

    const rota = await createRota({ storage });
    rota.agent("greeter", async (task) => `Hello, ${task.message}!`);
    await rota.start();
    const { taskId } = await rota.tasks.submit({ agentId: "greeter", message: "world" });
    expect(await rota.tasks.wait(taskId)).toMatchObject({ state: "done", result: "Hello, world!" });
    await rota.stop();

    const again = await createRota({ storage });
    expect(await again.tasks.get(taskId)).toMatchObject({ result: "Hello, world!" });
    await again.stop();
  });

  test("a task submitted before the start waits for it", async () => {
    const { rota } = await openTestRota();
    const { taskId, state, position } = await rota.tasks.submit({ message: "early" });
    expect([state, position]).toEqual(["queued", 1]);
    await settle();
    expect(await rota.tasks.get(taskId)).toMatchObject({ state: "queued" });
    await rota.start();
    await settle();
    expect(await rota.tasks.get(taskId)).toMatchObject({ state: "done", result: "early" });
  });

  test("time in a test moves when the test says so", async () => {
    const { rota, clock } = await createTestRota();
    onTestFinished(() => rota.stop({ graceMs: 0 }));
    rota.agent("slow", endless);
    await rota.start();
    const { taskId } = await rota.tasks.submit({ agentId: "slow", payload: 1, timeout: 5_000 });
    await clock.advance(5_000);
    expect(await rota.tasks.get(taskId)).toMatchObject({
      state: "failed",
      error: "timed out after 5000 ms",
      executionTimeMs: 5_000,
    });
  });

  test.each(["mysql://root:secret@db/x", "rota.db", ""])(
    "a storage %j is refused with what to write instead",
    async (storage) => {
      const refused = await createRota({ storage }).catch((error) => error);
      expect(refused).toMatchObject({ code: "invalid_field" });
      expect(refused.message).toContain(
        '"sqlite:rota.db", "sqlite::memory:" or "postgres://user:password@host:5432/database"',
      );
      expect(refused.message).not.toContain("secret");
    },
  );
});

describe("starting on a database that others share", () => {
  async function openOnAway() {
    const clock = new ManualClock();
    const memory = await openMemory(clock);
    onTestFinished(() => memory.close());
    let tries = 0;
    let isAway = false;
    const meddler = {
      before: ({ operation }: { operation: string }) => {
        if (operation === "nodes.register") tries += 1;
        if (isAway && operation === "nodes.register") throw away();
      },
    };
    const opened = await openTestRota({
      clock,
      storage: asSharedStorage(memory),
      meddler,
      options: { storageWaitSec: 10 },
    });
    isAway = true;
    return {
      ...opened,
      tries: () => tries,
      comeBack: () => {
        isAway = false;
      },
    };
  }

  test("waits for it, and the log says so once", async () => {
    const { rota, clock, log, tries, comeBack } = await openOnAway();
    const started = rota.start();
    await clock.advance(5_000);
    expect([rota.state, tries()]).toEqual(["created", expect.any(Number)]);
    expect(tries()).toBeGreaterThan(2);
    comeBack();
    await clock.advance(2_000);
    await started;
    expect(rota.state).toBe("running");
    expect(log.messages("warn")).toEqual(["waiting for the storage, which does not respond"]);
  });

  test("gives up after `storageWaitSec`", async () => {
    const { rota, clock, comeBack } = await openOnAway();
    const failed = expect(rota.start()).rejects.toMatchObject({ code: "storage_unavailable" });
    await clock.advance(13_000);
    await failed;
    comeBack();
  });

  test("waits no longer once it is to stop", async () => {
    const { rota, clock, comeBack } = await openOnAway();
    const failed = expect(rota.start()).rejects.toMatchObject({ code: "draining" });
    await clock.advance(1_000);
    void rota.drain();
    await failed;
    comeBack();
  });
});

describe("submitting", () => {
  test("returns an id, a state, a position and a time", async () => {
    const { rota, clock } = await openTestRota();
    const first = await rota.tasks.submit({ payload: 1 });
    expect(first).toEqual({
      taskId: expect.stringMatching(/^tsk_[0-9a-f]{32}$/),
      state: "queued",
      position: 1,
      createdAt: new Date(clock.now()).toISOString(),
    });
    expect(await rota.tasks.submit({ payload: 2 })).toMatchObject({ position: 2 });
    const later = new Date(clock.now() + 1_000);
    expect(await rota.tasks.submit({ payload: 3, runAt: later })).toMatchObject({
      state: "delayed",
      position: 0,
    });
  });

  test("bad input gets a clear error and leaves nothing behind", async () => {
    const { rota } = await openTestRota();
    await expect(rota.tasks.submit({ mesage: "x" } as never)).rejects.toMatchObject({
      code: "invalid_field",
      status: 400,
      message: "unknown field `mesage`: did you mean `message`?",
    });
    await expect(rota.tasks.submitMany([{ payload: 1 }, {} as never])).rejects.toMatchObject({
      code: "invalid_field",
      message: expect.stringMatching(/^tasks\[1\]: a task needs exactly one of/),
      details: { index: 1 },
    });
    expect(await rota.tasks.counts()).toEqual({ counts: {}, total: 0 });
  });

  test("beyond the queue's size is refused, and the task kept as rejected", async () => {
    const { rota } = await openTestRota({ options: { scheduler: { maxQueueSize: 2 } } });
    await rota.tasks.submit({ payload: 1 });
    await rota.tasks.submit({ payload: 2 });
    const refused = rota.tasks.submit({ agentId: "crawler", payload: 3 });
    await expect(refused).rejects.toMatchObject({
      code: "queue_full",
      status: 429,
      retryable: true,
      message: "rejected: global queue full",
      details: { agentId: "crawler", queued: 2, maxQueue: 2, maxPerAgent: 100 },
    });
    const { tasks } = await rota.tasks.list({ state: "rejected" });
    expect(tasks).toMatchObject([
      { agentId: "crawler", state: "rejected", error: "rejected: global queue full" },
    ]);
    expect(await rota.stats()).toMatchObject({ metrics: { tasksSubmitted: 2, tasksRejected: 1 } });
  });

  test("`submitMany` returns a result for each", async () => {
    const { rota } = await openTestRota({ options: { scheduler: { maxPerAgent: 2 } } });
    const answers = await rota.tasks.submitMany([1, 2, 3].map((payload) => ({ agentId: "a", payload })));
    expect(answers).toMatchObject([
      { state: "queued", position: 1 },
      { state: "queued", position: 2 },
      { state: "rejected", error: "rejected: agent queue full" },
    ]);
    expect(answers[0]).not.toHaveProperty("error");
    expect(await rota.tasks.submitMany([])).toEqual([]);
  });

  test("is refused while the scheduler is disabled; reading is not", async () => {
    const { rota } = await openTestRota({ options: { scheduler: { enabled: false } } });
    await rota.start();
    await expect(rota.tasks.submit({ payload: 1 })).rejects.toMatchObject({ code: "scheduler_disabled" });
    expect(await rota.tasks.list()).toEqual({ tasks: [], count: 0, nextCursor: null });
  });
});

describe("agents", () => {
  test("are served by their own executor, else by that of the kind, else `index` echoes", async () => {
    const { rota } = await openTestRota({
      options: {
        agents: { listed: { executor: () => "its own" }, plain: {} },
        executors: { instruction: () => "by kind", message: { type: "echo" } },
      },
    });
    await rota.start();
    const run = async (input: Parameters<typeof rota.tasks.submit>[0]) => {
      const { taskId } = await rota.tasks.submit(input);
      await settle();
      const { result, error } = await rota.tasks.get(taskId);
      return error ?? result;
    };
    expect(await run({ agentId: "listed", instruction: "x" })).toBe("its own");
    expect(await run({ agentId: "plain", instruction: "x" })).toBe("by kind");
    expect(await run({ agentId: "unheard-of", message: "x" })).toBe("x");
    expect(await run({ payload: { a: 1 } })).toEqual({ a: 1 });
    expect(await run({ agentId: "unheard-of", payload: 1 })).toBeUndefined();
  });

  test("can be added and changed while it runs", async () => {
    const { rota } = await openTestRota();
    await rota.start();
    rota.agent("a", () => 1);
    const first = await rota.tasks.submit({ agentId: "a", payload: 0 });
    await settle();
    rota.agent("a", { lane: "team" }, () => 2);
    const second = await rota.tasks.submit({ agentId: "a", payload: 0 });
    await settle();
    expect(await rota.tasks.get(first.taskId)).toMatchObject({ result: 1, lane: "tasks" });
    expect(await rota.tasks.get(second.taskId)).toMatchObject({ result: 2, lane: "team" });
  });

  test("run no more at once than they may, over all lanes", async () => {
    const { rota } = await openTestRota();
    const latches: Latch[] = [];
    rota.agent("narrow", { maxInflight: 1 }, () => {
      const latch = new Latch();
      latches.push(latch);
      return latch.opened;
    });
    await rota.start();
    await rota.tasks.submit({ agentId: "narrow", payload: 1 });
    await rota.tasks.submit({ agentId: "narrow", message: "in another lane" });
    await settle();
    expect(latches).toHaveLength(1);
    latches[0]?.open();
    await settle();
    expect(latches).toHaveLength(2);
  });

  test.each(["nodes.register", "agents.configure"])(
    "made known while it starts, during `%s`, keep to their limit as well",
    async (during) => {
      const stored: unknown[] = [];
      let added = false;
      const { rota } = await openTestRota({
        options: { agents: { before: {} } },
        meddler: {
          before: ({ operation, params }) => {
            if (operation === "agents.configure") stored.push(params);
            if (operation !== during || added) return;
            added = true;
            rota.agent("before", { maxInflight: 3 }, endless);
            rota.agent("late", { maxInflight: 1 }, endless);
          },
        },
      });
      await rota.start();
      expect(stored).toContainEqual(expect.objectContaining({ agent: "late", maxInflight: 1 }));
      expect(stored).toContainEqual(expect.objectContaining({ agent: "before", maxInflight: 3 }));
      await rota.tasks.submitMany([
        { agentId: "late", payload: 1 },
        { agentId: "late", payload: 2 },
      ]);
      await settle();
      expect(await rota.tasks.counts()).toMatchObject({ counts: { running: 1, queued: 1 } });
    },
  );

  test("with an id that cannot be are refused", async () => {
    const { rota } = await openTestRota();
    expect(() => rota.agent("two\nlines", () => {})).toThrow("1 to 128 characters of any script");
  });

  test("that never end hold up only themselves", async () => {
    const { rota } = await openTestRota({
      options: { scheduler: { workerCount: 4, maxPerAgentInflight: 2 } },
    });
    rota.agent("stuck", endless);
    rota.agent("quick", () => "done");
    await rota.start();
    await rota.tasks.submitMany(Array.from({ length: 20 }, () => ({ agentId: "stuck", payload: 1 })));
    const { taskId } = await rota.tasks.submit({ agentId: "quick", payload: 1 });
    await settle();
    expect(await rota.tasks.get(taskId)).toMatchObject({ state: "done" });
  });
});

describe("failing", () => {
  test("is retried with growing waits, logged each time, and final when no retry is left", async () => {
    const { rota, clock } = await openTestRota();
    const events: RotaEvent[] = [];
    rota.onEvent((event) => void events.push(event));
    rota.agent("a", () => Promise.reject(new Error("no luck")));
    await rota.start();
    const { taskId } = await rota.tasks.submit({
      agentId: "a",
      instruction: "try",
      retryPolicy: { maxRetries: 2 },
    });
    await clock.advance(60_000);
    expect(await rota.tasks.get(taskId)).toMatchObject({
      state: "failed",
      error: "no luck",
      retryCount: 2,
      latencyMs: 3_000,
      attempts: [{ outcome: "failed" }, { outcome: "failed" }, { outcome: "failed" }],
    });
    expect(events.map(({ type }) => type)).toEqual([
      "task.created",
      "task.started",
      "task.retrying",
      "task.started",
      "task.retrying",
      "task.started",
      "task.failed",
    ]);
    expect(await rota.stats()).toMatchObject({ metrics: { tasksFailed: 1, dispatchCount: 3 } });
  });

  test("waits as long as the other side asked for", async () => {
    const url = await serve((_request, response) =>
      response.writeHead(429, { "retry-after": "7" }).end("busy"),
    );
    const { rota, clock } = await openTestRota({
      options: { executors: { instruction: { type: "http", url } } },
    });
    const retrying = nextEvent(rota, ({ type }) => type === "task.retrying");
    await rota.start();
    await rota.tasks.submit({ instruction: "call" });
    expect(await retrying).toMatchObject({
      error: "HTTP 429: busy",
      retryAt: new Date(clock.now() + 7_000).toISOString(),
    });
  });

  test("for good is not retried", async () => {
    const { rota } = await openTestRota();
    rota.agent("a", () => {
      throw new PermanentError("never");
    });
    await rota.start();
    const { taskId } = await rota.tasks.submit({ agentId: "a", instruction: "try" });
    await settle();
    expect(await rota.tasks.get(taskId)).toMatchObject({ state: "failed", error: "never", retryCount: 0 });
  });

  test("and retried by hand begins anew", async () => {
    const { rota } = await openTestRota();
    let broken = true;
    rota.agent("a", () => {
      if (broken) throw new PermanentError("broken");
      return "mended";
    });
    await rota.start();
    const { taskId } = await rota.tasks.submit({ agentId: "a", instruction: "try" });
    await settle();
    broken = false;
    expect(await rota.tasks.retry(taskId)).toMatchObject({ taskId, state: "queued" });
    await settle();
    expect(await rota.tasks.get(taskId)).toMatchObject({ state: "done", result: "mended", retryCount: 0 });
    await expect(rota.tasks.retry(taskId)).rejects.toMatchObject({ code: "conflict", status: 409 });
    await expect(rota.tasks.retry("tsk_none")).rejects.toMatchObject({ code: "not_found" });
  });
});

describe("cancelling", () => {
  test("removes a waiting task", async () => {
    const { rota } = await openTestRota();
    const { taskId } = await rota.tasks.submit({ payload: 1 });
    expect(await rota.tasks.cancel(taskId)).toEqual({ status: "cancelled", taskId });
    await rota.start();
    await settle();
    expect(await rota.tasks.get(taskId)).toMatchObject({ state: "cancelled", attempts: [] });
  });

  test("aborts a running one at once, frees its slot, and its result changes nothing", async () => {
    const { rota } = await openTestRota({ options: { scheduler: { workerCount: 1 } } });
    const latch = new Latch<string>();
    const signals: AbortSignal[] = [];
    rota.agent("deaf", (_task, { signal }) => {
      signals.push(signal);
      return latch.opened;
    });
    await rota.start();
    const { taskId } = await rota.tasks.submit({ agentId: "deaf", payload: 1 });
    const next = await rota.tasks.submit({ payload: "next" });
    await settle();
    await rota.tasks.cancel(taskId);
    expect(signals[0]?.aborted).toBe(true);
    await settle();
    expect(await rota.tasks.get(next.taskId)).toMatchObject({ state: "done" });
    latch.open("too late");
    await settle();
    expect(await rota.tasks.get(taskId)).toMatchObject({ state: "cancelled" });
    expect(await rota.tasks.get(taskId)).not.toHaveProperty("result");
    expect(await rota.stats()).toMatchObject({
      metrics: { tasksCancelled: 1, agents: { deaf: { cancelled: 1, completed: 0 } } },
    });
  });

  test("works from a node that does not run it", async () => {
    const one = await openTestRota();
    const two = await openTestRota({ clock: one.clock, storage: one.storage });
    let aborted = false;
    one.rota.agent("a", (_task, { signal }) => {
      signal.addEventListener("abort", () => {
        aborted = true;
      });
      return endless({} as never, {} as never);
    });
    await one.rota.start();
    const { taskId } = await two.rota.tasks.submit({ agentId: "a", payload: 1 });
    await settle();
    await two.rota.tasks.cancel(taskId);
    expect(aborted).toBe(true);
  });

  test("what has ended is a conflict, what is not there is not found", async () => {
    const { rota } = await openTestRota();
    await rota.start();
    const { taskId } = await rota.tasks.submit({ payload: 1 });
    await settle();
    await expect(rota.tasks.cancel(taskId)).rejects.toMatchObject({
      code: "conflict",
      message: "task is already done",
    });
    await expect(rota.tasks.cancel("tsk_none")).rejects.toMatchObject({
      code: "not_found",
      message: "task not found",
    });
  });

  test("in a race with the end, one of them wins and the other changes nothing", async () => {
    const { rota } = await openTestRota();
    const latches = new Map<string, Latch>();
    rota.agent("a", async ({ taskId }) => {
      const latch = new Latch();
      latches.set(taskId, latch);
      await latch.opened;
    });
    await rota.start();
    for (let turn = 0; turn < 12; turn++) {
      const { taskId } = await rota.tasks.submit({ agentId: "a", payload: turn });
      await until(() => latches.has(taskId), "the start");
      latches.get(taskId)?.open();
      for (let i = 0; i < turn % 6; i++) await new Promise((resolve) => setImmediate(resolve));
      const cancelled = await rota.tasks.cancel(taskId).then(
        () => true,
        () => false,
      );
      await settle();
      const { state, attempts } = await rota.tasks.get(taskId);
      expect(state).toBe(cancelled ? "cancelled" : "done");
      expect(attempts).toHaveLength(1);
    }
    expect(await rota.stats()).toMatchObject({ queue: { totalQueued: 0, totalInflight: 0 } });
  });
});

describe("progress", () => {
  test("is published while it runs, and no longer after its end", async () => {
    const { rota } = await openTestRota();
    const reported: unknown[] = [];
    rota.onEvent(({ type, progress }) => {
      if (type === "task.progress") reported.push(progress);
    });
    const latch = new Latch();
    let late: ((data: unknown) => void) | undefined;
    rota.agent("a", async (_task, { progress }) => {
      late = progress;
      progress({ step: 1 });
      await latch.opened;
    });
    await rota.start();
    await rota.tasks.submit({ agentId: "a", payload: 1 });
    await settle();
    latch.open();
    await settle();
    late?.({ step: 2 });
    await settle();
    expect(reported).toEqual([{ step: 1 }]);
  });
});

describe("stopping", () => {
  test("waits for running work, then lets go", async () => {
    const { rota } = await openTestRota();
    const latch = new Latch<string>();
    rota.agent("a", () => latch.opened);
    await rota.start();
    const { taskId } = await rota.tasks.submit({ agentId: "a", payload: 1 });
    await settle();
    let state: string | undefined;
    rota.onEvent((event) => {
      if (event.taskId === taskId) state = event.state;
    });
    const stopping = rota.stop();
    await settle();
    expect(rota.state).toBe("draining");
    latch.open("in time");
    await stopping;
    expect([rota.state, state]).toEqual(["stopped", "done"]);
    await rota.stop();
    await expect(rota.tasks.get(taskId)).rejects.toMatchObject({ code: "storage_unavailable" });
  });

  test("interrupts after the grace: back uncounted with retries left, else failed", async () => {
    const { rota, clock } = await openTestRota();
    const signals: AbortSignal[] = [];
    rota.agent("a", (_task, { signal }) => {
      signals.push(signal);
      return new Promise(() => {});
    });
    await rota.start();
    const again = await rota.tasks.submit({ agentId: "a", instruction: "retried" });
    const once = await rota.tasks.submit({ agentId: "a", payload: "not retried" });
    await settle();
    const draining = rota.drain();
    await clock.advance(29_999);
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, false]);
    await clock.advance(1);
    await draining;
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, true]);
    expect(await rota.tasks.get(again.taskId)).toMatchObject({ state: "queued", retryCount: 0 });
    expect(await rota.tasks.get(once.taskId)).toMatchObject({
      state: "failed",
      error: "interrupted by shutdown",
    });
  });

  test("refuses new work at once; reads and events go on until it has stopped", async () => {
    const { rota } = await openTestRota();
    const { taskId } = await rota.tasks.submit({ payload: 1 });
    await rota.start();
    await settle();
    await rota.drain();
    await expect(rota.tasks.submit({ payload: 2 })).rejects.toMatchObject({ code: "draining", status: 503 });
    await expect(rota.tasks.retry(taskId)).rejects.toMatchObject({ code: "draining" });
    expect(await rota.tasks.get(taskId)).toMatchObject({ state: "done" });
    const first = await rota.events({ after: 0 }).next();
    expect(first.value).toMatchObject({ type: "task.created" });
    await expect(rota.start()).rejects.toMatchObject({ code: "draining" });
  });

  test("is visible at once, also while it starts, and what it began then is stopped in order", async () => {
    const registering = new Latch();
    const { rota } = await openTestRota({
      meddler: {
        before: ({ operation }) => (operation === "nodes.register" ? registering.opened : undefined),
      },
    });
    const started = rota.start();
    await settle();
    const draining = rota.drain();
    expect([rota.state, rota.draining.aborted]).toEqual(["draining", true]);
    await expect(rota.tasks.submit({ payload: 1 })).rejects.toMatchObject({ code: "draining" });
    registering.open();
    await started;
    expect(rota.state).toBe("draining");
    await draining;
    expect(rota.state).toBe("drained");
  });

  test("starts nothing more, and what was accepted stays", async () => {
    const { rota } = await openTestRota({ options: { scheduler: { workerCount: 1 } } });
    const latch = new Latch();
    rota.agent("a", () => latch.opened);
    await rota.start();
    const { 1: second } = await rota.tasks.submitMany([1, 2].map((payload) => ({ agentId: "a", payload })));
    await settle();
    const draining = rota.drain();
    latch.open();
    await draining;
    expect(await rota.tasks.get(second?.taskId ?? "")).toMatchObject({ state: "queued", attempts: [] });
  });

  test("before it was started, or twice at once, is fine", async () => {
    const { rota } = await openTestRota();
    await Promise.all([rota.stop(), rota.stop()]);
    expect(rota.state).toBe("stopped");
  });

  test("writes what was submitted in the same moment", async () => {
    const { rota, storage } = await openTestRota();
    await rota.start();
    const submitted = rota.tasks.submit({ payload: 1 });
    const drained = rota.drain();
    await Promise.all([submitted, drained]);
    const counts = await storage.tasks.counts({ tenant: "default" });
    expect((counts.queued ?? 0) + (counts.done ?? 0)).toBe(1);
  });

  test("ends also when the storage is away for good, and the log says what was not written", async () => {
    let broken = false;
    const { rota, clock, log } = await openTestRota({
      meddler: {
        before: () => {
          if (broken) throw away();
        },
      },
    });
    rota.agent("a", () => {
      broken = true;
      return "lost";
    });
    await rota.start();
    await rota.tasks.submit({ agentId: "a", payload: 1 });
    await settle();
    const stopping = rota.stop();
    await clock.advance(60_000);
    await stopping;
    expect(log.messages("error")).toContain(
      "could not store the outcomes of some tasks; they run again after the next start",
    );
  });
});

describe("reading", () => {
  test("lists newest first, in pages, by what is asked for", async () => {
    const { rota } = await openTestRota();
    await rota.tasks.submitMany(
      [1, 2, 3, 4, 5].map((payload) => ({ payload, agentId: payload > 3 ? "b" : "a" })),
    );
    const page = await rota.tasks.list({ limit: 2 });
    expect(page.tasks.map(({ payload }) => payload)).toEqual([5, 4]);
    expect(page.count).toBe(2);
    const next = await rota.tasks.list({ limit: 3, cursor: page.nextCursor ?? "" });
    expect(next.tasks.map(({ payload }) => payload)).toEqual([3, 2, 1]);
    expect(next.nextCursor).toBeNull();
    expect((await rota.tasks.list({ agentId: "b", state: ["pending"] })).count).toBe(2);
    await expect(rota.tasks.list({ state: "dine" as never })).rejects.toThrow("did you mean `done`?");
  });

  test("a task that is not there is not found", async () => {
    const { rota } = await openTestRota();
    await expect(rota.tasks.get("tsk_none")).rejects.toMatchObject({
      code: "not_found",
      message: "task not found",
    });
  });

  test("stats have the shape they are known by", async () => {
    const { rota, clock } = await openTestRota();
    rota.agent("a", () => 1);
    await rota.tasks.submitMany([1, 2].map((payload) => ({ agentId: "a", payload })));
    await rota.tasks.submit({ agentId: "later", payload: 1, runAt: new Date(clock.now() + 60_000) });
    expect(await rota.stats()).toEqual({
      queue: { totalQueued: expect.any(Number), totalInflight: 0, agentCounts: expect.any(Object) },
      metrics: {
        tasksSubmitted: 3,
        tasksCompleted: 0,
        tasksFailed: 0,
        tasksCancelled: 0,
        tasksRejected: 0,
        tasksExpired: 0,
        dispatchCount: 0,
        avgDispatchLatencyMs: 0,
        agents: {
          a: { submitted: 2, completed: 0, failed: 0, cancelled: 0, rejected: 0 },
          later: { submitted: 1, completed: 0, failed: 0, cancelled: 0, rejected: 0 },
        },
      },
      config: {
        strategy: "fair-fifo",
        maxQueueSize: 1_000,
        maxPerAgent: 100,
        maxInflight: 20,
        maxPerAgentFlight: 10,
        workerCount: 4,
        resultTTL: "5m0s",
      },
    });
  });

  test("health says whether the storage responds", async () => {
    let broken = false;
    const { rota, clock, log } = await openTestRota({
      meddler: {
        before: () => {
          if (broken) throw away();
        },
      },
    });
    expect(await rota.health()).toMatchObject({ storage: "ok" });
    broken = true;
    await clock.advance(1_000);
    expect(await rota.health()).toMatchObject({
      storage: "unavailable",
      storageError: "the connection was lost",
    });
    broken = false;
    await clock.advance(1_000);
    expect(await rota.health()).not.toHaveProperty("storageError");
    expect(log.messages("error", "info")).toEqual([
      "cannot write to the storage; this node is not ready until writing works",
      "writing to the storage works again",
    ]);
  });
});

describe("events", () => {
  test("include everything from the moment a handler was added", async () => {
    const { rota } = await openTestRota();
    await rota.start();
    const created = nextEvent(rota, ({ type }) => type === "task.created");
    const { taskId } = await rota.tasks.submit({ payload: { a: 1 } });
    expect(await created).toMatchObject({ taskId, agentId: "index", lane: "tasks", state: "queued" });
  });

  test("can be read on after the last one seen", async () => {
    const { rota } = await openTestRota();
    await rota.start();
    await rota.tasks.submit({ payload: { a: 1 } });
    await settle();
    const types: string[] = [];
    for await (const event of rota.events({ after: 1 })) {
      types.push(event.type);
      if (event.type !== "task.completed") continue;
      expect(event.result).toEqual({ a: 1 });
      break;
    }
    expect(types).toEqual(["task.started", "task.completed"]);
  });

  test.each([Number.NaN, -5, 1.5, Number.POSITIVE_INFINITY, "3", null, 10n, {}])(
    "after %s are refused",
    async (after) => {
      const { rota } = await openTestRota();
      expect(() => rota.events({ after: after as never })).toThrow(
        expect.objectContaining({ code: "invalid_field", details: { field: "after" } }),
      );
    },
  );
});
