import { describe, expect, test } from "vitest";
import {
  type Answerer,
  json,
  networkFailure,
  refusal,
  scriptedFetch,
  silence,
} from "../../test/support/scripted-fetch.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { Connection } from "./connection.ts";
import { checkOptions } from "./settings.ts";
import { TaskWaiter } from "./task-waiter.ts";

const PATH = "/v1/tasks/tsk_1";
const running = json({ taskId: "tsk_1", state: "running" });
const done = json({ taskId: "tsk_1", state: "done" });

function open(answers: Answerer[], { clock = new ManualClock(), ...options }: OpenOptions = {}) {
  const { fetch, sent } = scriptedFetch(...answers);
  const settings = checkOptions({ url: "http://rota.test", fetch, clock, random: () => 0.5 });
  return { waiter: new TaskWaiter(new Connection(settings), options), sent, clock };
}

interface OpenOptions {
  readonly holdsMax?: number;
  readonly clock?: ManualClock;
}

/** Holds its response as the server does, by the test's clock. */
function held(clock: ManualClock, ms: number, answer: Answerer): Answerer {
  return (request) => new Promise((resolve) => clock.setTimer(ms, () => resolve(answer(request))));
}

describe("TaskWaiter", () => {
  test("lets the server hold its response until the task has ended, again and again", async () => {
    const clock = new ManualClock();
    const { waiter, sent } = open([held(clock, 30_000, running), held(clock, 10_000, done)], { clock });
    const ended = waiter.wait(PATH);
    await clock.advance(39_999);
    expect(sent.map(({ path }) => path)).toEqual([`${PATH}?wait=30`, `${PATH}?wait=30`]);
    await clock.advance(1);
    expect(await ended).toMatchObject({ state: "done" });
    expect(clock.pending).toBe(0);
  });

  test("outlasts a server that is started anew", async () => {
    const { waiter, clock } = open([
      networkFailure("ECONNRESET"),
      networkFailure("ECONNREFUSED"),
      () => new Response("Bad Gateway", { status: 502 }),
      refusal("storage_unavailable", 503),
      ...Array(50).fill(networkFailure("ECONNREFUSED")),
      done,
    ]);
    const ended = waiter.wait(PATH);
    await clock.advance(300_000);
    expect(await ended).toMatchObject({ state: "done" });
  });

  test("asks a server that is away ever more rarely", async () => {
    const { waiter, sent, clock } = open([networkFailure("ECONNREFUSED")]);
    waiter.wait(PATH, { timeoutMs: 3_600_000 }).catch(() => {});
    await clock.advance(600_000);
    const before = sent.length;
    await clock.advance(60_000);
    expect(sent.length - before).toBe(16);
    await clock.advance(3_600_000);
  });

  test.each([
    ["there is no such task", refusal("not_found", 404), { code: "not_found" }],
    ["the key is wrong", refusal("unauthorized", 401), { code: "unauthorized" }],
    ["it is not Rota", () => new Response("<html>", { status: 404 }), { name: "ConnectionError" }],
  ])("throws at once when %s", async (_what, answer, error) => {
    const { waiter } = open([answer]);
    await expect(waiter.wait(PATH)).rejects.toMatchObject(error);
  });

  test("throws a TimeoutError when its time is up, whatever the server does", async () => {
    for (const answer of [silence, networkFailure("ECONNREFUSED"), running]) {
      const { waiter, clock } = open([answer]);
      const waiting = expect(waiter.wait(PATH, { timeoutMs: 5_000 })).rejects.toMatchObject({
        name: "TimeoutError",
        message: "the task had not ended after 5000 ms",
      });
      await clock.advance(5_000);
      await waiting;
      expect(clock.pending).toBe(0);
    }
  });

  test("throws the signal's reason, and aborts its request", async () => {
    const { waiter, sent, clock } = open([silence]);
    const controller = new AbortController();
    const waiting = expect(waiter.wait(PATH, { signal: controller.signal })).rejects.toBe("enough");
    await clock.advance(1_000);
    controller.abort("enough");
    await waiting;
    expect([sent[0]?.signal.aborted, clock.pending]).toEqual([true, 0]);
    await expect(waiter.wait(PATH, { signal: controller.signal })).rejects.toBe("enough");
    expect(sent).toHaveLength(1);
  });

  test.each([0, -1, Number.NaN, "soon"])("refuses to wait for %s ms", async (timeoutMs) => {
    const { waiter } = open([done]);
    await expect(waiter.wait(PATH, { timeoutMs: timeoutMs as number })).rejects.toMatchObject({
      code: "invalid_field",
      details: { field: "timeoutMs" },
    });
  });

  test("holds a bounded number of connections, and polls for the other tasks", async () => {
    const { waiter, sent, clock } = open([silence, silence, running, running, done], { holdsMax: 2 });
    void Promise.allSettled([waiter.wait(PATH), waiter.wait(PATH)]);
    const third = waiter.wait(PATH);
    await clock.advance(1_999);
    expect(sent.map(({ path }) => path)).toEqual([`${PATH}?wait=30`, `${PATH}?wait=30`, PATH, PATH]);
    await clock.advance(1);
    expect(await third).toMatchObject({ state: "done" });
  });

  test("hands a connection that is free to the one who has looked the longest", async () => {
    const clock = new ManualClock();
    const { waiter, sent } = open([held(clock, 100, done), running, running, done, silence], {
      clock,
      holdsMax: 1,
    });
    const first = waiter.wait(PATH);
    const second = waiter.wait(PATH);
    const third = waiter.wait(PATH, { timeoutMs: 500 }).catch(({ name }) => name);
    await clock.advance(100);
    expect(await Promise.all([first, second])).toMatchObject([{ state: "done" }, { state: "done" }]);
    expect(sent.map(({ path }) => path.slice(PATH.length))).toEqual([
      "?wait=30",
      "",
      "",
      "?wait=30",
      "?wait=30",
    ]);
    await clock.advance(400);
    expect([await third, clock.pending]).toEqual(["TimeoutError", 0]);
  });

  test("polls when the server holds no more responses", async () => {
    const { waiter, sent, clock } = open([refusal("rate_limited", 429), running, done]);
    const ended = waiter.wait(PATH);
    await clock.advance(1_000);
    expect(await ended).toMatchObject({ state: "done" });
    expect(sent.map(({ path }) => path)).toEqual([`${PATH}?wait=30`, PATH, `${PATH}?wait=30`]);
  });

  test("does not poll without a pause when a server responds at once", async () => {
    const { waiter, sent, clock } = open([running]);
    waiter.wait(PATH, { timeoutMs: 10_000 }).catch(() => {});
    await clock.advance(10_000);
    expect(sent).toHaveLength(10);
  });
});
