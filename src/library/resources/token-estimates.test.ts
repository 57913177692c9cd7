import { describe, expect, test } from "vitest";
import { openTestRota, type TestRotaParams } from "../../../test/support/rota.ts";
import { asSharedStorage, away, type Call, openMemory } from "../../../test/support/storages.ts";
import type { ContextUse, EstimateTokens } from "../../interface/options.ts";
import { ManualClock, settle } from "../../testing/manual-clock.ts";
import { Latch, until } from "../../testing/signals.ts";

const KEY = "user:42";

/** A Rota with an estimator, and the writes of sessions that it makes. */
async function openEstimated(estimateTokens: EstimateTokens, params: TestRotaParams = {}) {
  const updates: unknown[] = [];
  const after = ({ operation, params: given }: Call) => {
    if (operation === "sessions.update") updates.push(given.changes);
  };
  const options = { sessions: { debounceMs: 0 }, ...params.options, estimateTokens };
  const opened = await openTestRota({ meddler: { after }, ...params, options });
  return { ...opened, updates };
}

describe("estimateTokens", () => {
  test("is asked before a message is accepted, and what is new is stored", async () => {
    let use: ContextUse | null = { tokens: 10, contextWindow: 100 };
    const asked: string[] = [];
    const { rota, updates } = await openEstimated((key) => {
      asked.push(key);
      return use;
    });
    const send = () => rota.sessions.send(KEY, { message: "hi" });
    await send();
    await send();
    expect([asked, updates]).toEqual([[KEY, KEY], [{ tokens: 10, contextWindow: 100 }]]);
    use = { tokens: 60, contextWindow: 100 };
    await send();
    use = null;
    await send();
    expect(updates).toHaveLength(2);
    expect(await rota.sessions.get(KEY)).toMatchObject({ tokens: 60, contextWindow: 100 });
  });

  test("makes a session whose context fills up run one at a time", async () => {
    let tokens = 0;
    const { rota } = await openEstimated(async () => ({ tokens, contextWindow: 100 }), {
      options: { sessions: { debounceMs: 0, maxConcurrent: 3 } },
    });
    const latch = new Latch();
    let running = 0;
    rota.agent("a", () => {
      running += 1;
      return latch.opened;
    });
    await rota.start();
    const send = () => rota.sessions.send(KEY, { message: "hi", agentId: "a" });
    await send();
    await send();
    await until(() => running === 2);
    tokens = 60;
    await send();
    await settle();
    // What runs is not touched.
    expect(await rota.sessions.get(KEY)).toMatchObject({
      maxConcurrent: 3,
      effectiveMaxConcurrent: 1,
      running: 2,
      queued: 1,
    });
    latch.open();
    await until(() => running === 3);
  });

  test("is asked again when a task of the session has ended, and lets more start", async () => {
    let tokens = 90;
    const { rota } = await openEstimated(() => ({ tokens, contextWindow: 100 }), {
      options: { sessions: { debounceMs: 0, maxConcurrent: 3 } },
    });
    const latches = new Map<string, Latch>();
    rota.agent("a", ({ message = "" }) => {
      const latch = new Latch();
      latches.set(message, latch);
      return latch.opened;
    });
    await rota.start();
    for (const message of ["one", "two", "three"]) {
      await rota.sessions.send(KEY, { message, agentId: "a" });
    }
    await until(() => latches.size === 1);
    // The program has made a summary.
    tokens = 5;
    latches.get("one")?.open();
    await until(() => latches.size === 3, "the others to start");
    expect(await rota.sessions.get(KEY)).toMatchObject({ tokens: 5, effectiveMaxConcurrent: 3, running: 2 });
  });

  test("is asked where the task ran, not by other nodes", async () => {
    const clock = new ManualClock();
    const storage = await openMemory(clock);
    const asked: string[] = [];
    const node = (name: string) =>
      openEstimated(
        () => {
          asked.push(name);
          return null;
        },
        { clock, storage: asSharedStorage(storage) },
      );
    const [here, there] = [await node("here"), await node("there")];
    there.rota.agent("a", () => "done");
    await here.rota.start();
    await here.rota.drain();
    await there.rota.start();
    const { taskId = "" } = await there.rota.sessions.send(KEY, { message: "hi", agentId: "a" });
    await there.rota.tasks.wait(taskId);
    await until(() => asked.length === 2);
    await settle();
    expect(asked).toEqual(["there", "there"]);
  });

  test.each<[string, EstimateTokens]>([
    [
      "throws",
      () => {
        throw new Error("no luck");
      },
    ],
    ["rejects", () => Promise.reject(new Error("no luck"))],
    ["answers something else", () => 5 as never],
    ["answers what cannot be", () => ({ tokens: -1, contextWindow: 100 })],
    ["answers no window", () => ({ tokens: 1, contextWindow: 0 })],
  ])("that %s is named in the log, and the message is accepted", async (_name, estimate) => {
    const { rota, log, updates } = await openEstimated(estimate);
    expect(await rota.sessions.send(KEY, { message: "hi" })).toHaveProperty("taskId");
    expect(log.lines).toMatchObject([
      { level: "warn", message: "cannot estimate the tokens of a session", fields: { sessionKey: KEY } },
    ]);
    expect(updates).toEqual([]);
  });

  test("that does not return delays a message by two seconds, and nothing else", async () => {
    let calls = 0;
    const { rota, clock, log } = await openEstimated(() => {
      calls += 1;
      return new Promise(() => {});
    });
    const sent = [rota.sessions.send(KEY, { message: "hi" }), rota.sessions.send(KEY, { message: "hi" })];
    expect(await rota.sessions.send(KEY, { message: "/stop" })).toEqual({ stopped: [], cancelled: [] });
    await clock.advance(1_999);
    expect((await rota.tasks.counts()).total).toBe(0);
    await clock.advance(1);
    await Promise.all(sent);
    expect([calls, log.messages()]).toEqual([1, ["cannot estimate the tokens of a session"]]);
    expect(String(log.lines[0]?.fields["error"])).toContain("did not return within 2000 ms");
  });

  test("whose estimate cannot be stored is named in the log, and the message is accepted", async () => {
    const before = ({ operation }: Call) => {
      if (operation === "sessions.update") throw away();
    };
    const { rota, log } = await openEstimated(() => ({ tokens: 1, contextWindow: 2 }), {
      meddler: { before },
    });
    expect(await rota.sessions.send(KEY, { message: "hi" })).toHaveProperty("taskId");
    expect(log.messages()).toEqual(["cannot estimate the tokens of a session"]);
  });

  test("has to be a function", async () => {
    await expect(openTestRota({ options: { estimateTokens: 5 as never } })).rejects.toThrow(
      "`estimateTokens` must be a function that takes the key of a session",
    );
  });
});
