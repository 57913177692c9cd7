import { describe, expect, test } from "vitest";
import {
  type Answerer,
  json,
  networkFailure,
  refusal,
  scriptedFetch,
  silence,
} from "../../test/support/scripted-fetch.ts";
import { RotaError } from "../model/errors.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { ConnectionError } from "./connection-error.ts";
import { RotaClient } from "./rota-client.ts";
import type { RotaClientOptions } from "./settings.ts";

const URL = "http://rota.test";
const TASK = { taskId: "tsk_1", state: "queued", position: 1, createdAt: "2026-01-01T00:00:00.000Z" };

function open(answers: Answerer[], options: Partial<RotaClientOptions> = {}) {
  const clock = new ManualClock();
  const { fetch, sent } = scriptedFetch(...answers);
  // Chance in the middle: a pause is three quarters of its longest, or what the server asks for and an eighth more.
  const rota = new RotaClient({ url: URL, fetch, clock, random: () => 0.5, ...options });
  return { rota, sent, clock };
}

/** What a call throws, whenever that is. */
function errorOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => undefined,
    (error) => error,
  );
}

describe("what is sent", () => {
  test.each([
    ["http://rota.test", "http://rota.test/v1/tasks"],
    ["http://rota.test/", "http://rota.test/v1/tasks"],
    ["https://rota.test:8443/behind/a/proxy/", "https://rota.test:8443/behind/a/proxy/v1/tasks"],
  ])("goes to the server at %s", async (url, tasks) => {
    const { rota, sent } = open([json(TASK, 202)], { url });
    await rota.tasks.submit({ message: "hello" });
    expect(sent[0]?.url).toBe(tasks);
  });

  test("is JSON, moments as text, with the key", async () => {
    const { rota, sent } = open([json(TASK, 202)], { key: "rota_secret" });
    expect(await rota.tasks.submit({ message: "hello", runAt: new Date(0) })).toEqual(TASK);
    expect(sent[0]).toMatchObject({
      method: "POST",
      body: { message: "hello", runAt: "1970-01-01T00:00:00.000Z" },
    });
    expect(Object.fromEntries(sent[0]?.headers ?? [])).toEqual({
      authorization: "Bearer rota_secret",
      "content-type": "application/json",
    });
  });

  test("has filters in the query, without those that are not set", async () => {
    const { rota, sent } = open([json({ tasks: [], count: 0, nextCursor: null })]);
    await rota.tasks.list({ state: ["done", "failed"], agentId: "a/b c", limit: 5 });
    expect(sent[0]?.path).toBe("/v1/tasks?state=done%2Cfailed&agentId=a%2Fb+c&limit=5");
  });

  test("names agents so that any id is one part of the path", async () => {
    const { rota, sent } = open([json({ id: "a/b" })]);
    await rota.agents.get("team/a b?");
    expect(sent[0]?.path).toBe("/v1/agents/team%2Fa%20b%3F");
  });

  test.each(["", ".", "..", "a/b", "stats", "events", "batch", "batches"])(
    "is nothing when %j is asked for as a task: it would lead elsewhere",
    async (id) => {
      const { rota, sent } = open([json({})]);
      for (const call of [
        rota.tasks.get(id),
        rota.tasks.cancel(id),
        rota.tasks.retry(id),
        rota.tasks.wait(id),
      ]) {
        expect(await errorOf(call)).toMatchObject({ code: "not_found", message: "task not found" });
      }
      expect(sent).toEqual([]);
    },
  );

  test.each(["", ".", ".."])("is nothing when %j is asked for as an agent or a delivery", async (id) => {
    const { rota, sent } = open([json({})]);
    expect(await errorOf(rota.agents.get(id))).toMatchObject({ code: "invalid_field" });
    expect(await errorOf(rota.webhooks.get(id))).toMatchObject({ code: "not_found" });
    expect(sent).toEqual([]);
  });

  test("is nothing when it is no JSON", async () => {
    const { rota, sent } = open([json(TASK, 202)]);
    expect(await errorOf(rota.tasks.submit({ payload: 1n }))).toMatchObject({ code: "invalid_field" });
    expect(sent).toEqual([]);
  });
});

test("what comes back is parsed by the parser that was given", async () => {
  const parse = (text: string) => JSON.parse(text.replaceAll(/:\s*(\d{16,})/g, ':"$1"'));
  const large = () => new Response('{"taskId":"tsk_1","payload":9007199254740993}');
  const { rota } = open([large, () => new Response("<html>")], { parse, retry: false });
  expect(await rota.tasks.get("tsk_1")).toMatchObject({ payload: "9007199254740993" });
  expect(await errorOf(rota.tasks.get("tsk_1"))).toBeInstanceOf(ConnectionError);
});

describe("what is thrown", () => {
  test("is the library's own error when Rota refuses", async () => {
    const body = { code: "invalid_field", error: "`priority` must be …", details: { field: "priority" } };
    const { rota } = open([json(body, 400)]);
    const error = (await errorOf(rota.tasks.submit({ message: "x" }))) as RotaError;
    expect(error).toBeInstanceOf(RotaError);
    expect([error.toJSON(), error.status, error.retryable]).toEqual([body, 400, false]);
  });

  test("keeps what a newer server says with a code that is not known here", async () => {
    const { rota } = open([json({ code: "tea_time", error: "come back later", retryable: true }, 418)], {
      retry: false,
    });
    expect(await errorOf(rota.stats())).toMatchObject({ code: "tea_time", status: 418, retryable: true });
  });

  test.each([
    ["a page", () => new Response("<html>\n  Hello</html>", { status: 200 })],
    ["an error page", () => new Response("<html>\n  Hello</html>", { status: 404 })],
  ])("says so when %s comes from something that is not Rota", async (_what, answer) => {
    const { rota } = open([answer]);
    const error = (await errorOf(rota.health())) as ConnectionError;
    expect(error).toBeInstanceOf(ConnectionError);
    expect(error.message).toBe(
      `${URL} does not respond as Rota does: status ${error.status}, "<html> Hello</html>"`,
    );
  });

  test("throws when no server listens", async () => {
    const { rota } = open([networkFailure("ECONNREFUSED")], { retry: false });
    expect(await errorOf(rota.health())).toMatchObject({
      name: "ConnectionError",
      message: `cannot reach Rota at ${URL}: connect ECONNREFUSED`,
      url: URL,
      mayHaveHappened: false,
    });
  });

  test.each(["ERR_SSL_WRONG_VERSION_NUMBER", "EPROTO"])(
    "says so when the server has no TLS: %s",
    async (code) => {
      const { rota } = open([networkFailure(code)], { retry: false });
      expect(await errorOf(rota.health())).toMatchObject({
        name: "ConnectionError",
        message: `cannot reach Rota at ${URL}: no TLS is spoken there; write http:// in place of https://`,
      });
    },
  );

  test("reports a response that takes too long, and aborts the request", async () => {
    const { rota, sent, clock } = open([silence], { timeoutMs: 5_000, retry: false });
    const error = errorOf(rota.tasks.submit({ message: "x" }));
    await clock.advance(4_999);
    expect(sent[0]?.signal.aborted).toBe(false);
    await clock.advance(1);
    expect(await error).toMatchObject({
      message: `Rota at ${URL} did not respond within 5000 ms`,
      mayHaveHappened: true,
    });
    expect([sent[0]?.signal.aborted, clock.pending]).toEqual([true, 0]);
  });
});

describe("a request that may work later", () => {
  const full = refusal("queue_full", 429, { "retry-after": "2" });

  test("is sent again when Retry-After says", async () => {
    const { rota, sent, clock } = open([full, full, json(TASK, 202)]);
    const submitted = rota.tasks.submit({ message: "x" });
    await clock.advance(2_249);
    expect(sent).toHaveLength(1);
    await clock.advance(1);
    expect(sent).toHaveLength(2);
    await clock.advance(2_250);
    expect(await submitted).toEqual(TASK);
    expect(sent).toHaveLength(3);
  });

  test.each([
    ["three times", {}, 4],
    ["as often as `tries` says", { retry: { tries: 1 } }, 2],
    ["never with `retry: false`", { retry: false as const }, 1],
    ["not beyond the time it has", { retry: { withinMs: 5_000 } }, 3],
  ])("is sent again %s, then the error is thrown", async (_what, options, requests) => {
    const { rota, sent, clock } = open([full], options);
    const error = errorOf(rota.tasks.submit({ message: "x" }));
    await clock.advance(60_000);
    expect(await error).toMatchObject({ code: "queue_full" });
    expect(sent).toHaveLength(requests);
  });

  test("waits longer each time when the server does not say how long", async () => {
    const { rota, sent, clock } = open([networkFailure("ECONNRESET")]);
    const error = errorOf(rota.stats());
    const times: number[] = [];
    for (let ms = 0; ms < 2_000; ms += 50) {
      await clock.advance(50);
      if (sent.length > times.length + 1) times.push(clock.monotonic());
    }
    expect(times).toEqual([150, 450, 1_050]);
    expect(await error).toBeInstanceOf(ConnectionError);
  });

  test("is not sent again when Rota says that it will not work", async () => {
    const { rota, sent } = open([refusal("scheduler_disabled", 503)]);
    expect(await errorOf(rota.tasks.submit({ message: "x" }))).toMatchObject({ code: "scheduler_disabled" });
    expect(sent).toHaveLength(1);
  });

  test.each([
    ["a submit whose connection broke", networkFailure("ECONNRESET")],
    ["a submit that a proxy failed to pass on", () => new Response("", { status: 502 })],
  ])("is not %s: it may have been carried out", async (_what, answer) => {
    const { rota, sent } = open([answer]);
    expect(await errorOf(rota.tasks.submit({ message: "x" }))).toMatchObject({ mayHaveHappened: true });
    expect(sent).toHaveLength(1);
  });

  const away = refusal("storage_unavailable", 503, { "retry-after": "5" });

  test.each<[string, (rota: RotaClient) => Promise<unknown>]>([
    ["a submit", ({ tasks }) => tasks.submit({ message: "x" })],
    ["a batch", ({ tasks }) => tasks.submitBatch({ tasks: [{ message: "x", idempotencyKey: "k" }] })],
    ["a retry", ({ tasks }) => tasks.retry("tsk_1")],
  ])("is not %s to which the storage did not respond: it may have been stored", async (_what, call) => {
    const { rota, sent, clock } = open([away]);
    const error = errorOf(call(rota));
    await clock.advance(60_000);
    expect(await error).toMatchObject({ code: "storage_unavailable" });
    expect(sent).toHaveLength(1);
  });

  test.each<[string, Answerer]>([
    ["whose connection broke", networkFailure("ECONNRESET")],
    ["that a proxy failed to pass on", () => new Response("", { status: 502 })],
    ["that the storage gave no answer to", away],
  ])("is a submit with an idempotency key %s", async (_what, answer) => {
    const { rota, sent, clock } = open([answer, json(TASK, 202)]);
    const submitted = rota.tasks.submit({ message: "x", idempotencyKey: "k" });
    await clock.advance(10_000);
    expect(await submitted).toEqual(TASK);
    expect(sent.map(({ body }) => body)).toEqual(Array(2).fill({ message: "x", idempotencyKey: "k" }));
  });

  test("is a submit that a server turned away because it stops", async () => {
    const { rota, sent, clock } = open([refusal("draining", 503, { "retry-after": "5" }), json(TASK, 202)]);
    const submitted = rota.tasks.submit({ message: "x" });
    await clock.advance(10_000);
    expect(await submitted).toEqual(TASK);
    expect(sent).toHaveLength(2);
  });

  test("is a submit that never left this machine", async () => {
    const { rota, sent, clock } = open([networkFailure("ECONNREFUSED"), json(TASK, 202)]);
    const submitted = rota.tasks.submit({ message: "x" });
    await clock.advance(1_000);
    expect(await submitted).toEqual(TASK);
    expect(sent).toHaveLength(2);
  });

  test.each<[string, Answerer]>([
    ["whose connection broke", networkFailure("ECONNRESET")],
    ["that the storage gave no answer to", away],
  ])("is a cancel %s, and that it was cancelled is then no error", async (_what, answer) => {
    const details = { state: "cancelled" };
    const done = json({ code: "conflict", error: "it is no longer open", details }, 409);
    const { rota, clock } = open([answer, done]);
    const cancelled = rota.tasks.cancel("tsk_1");
    await clock.advance(10_000);
    expect(await cancelled).toEqual({ status: "cancelled", taskId: "tsk_1" });
    expect(await errorOf(rota.tasks.cancel("tsk_1"))).toMatchObject({ code: "conflict" });
  });

  test("is a cancel, and that the task ended in another way meanwhile is an error", async () => {
    const details = { state: "done" };
    const done = json({ code: "conflict", error: "task is already cancelled", details }, 409);
    const { rota, clock } = open([networkFailure("ECONNRESET"), done]);
    const error = errorOf(rota.tasks.cancel("tsk_1"));
    await clock.advance(10_000);
    expect(await error).toMatchObject({ code: "conflict", details });
  });

  test("is the deletion of an agent, and that it is gone is then no error", async () => {
    const { rota, clock } = open([networkFailure("ECONNRESET"), refusal("not_found", 404)]);
    const deleted = rota.agents.delete("a");
    await clock.advance(1_000);
    expect(await deleted).toEqual({ deleted: true });
    expect(await errorOf(rota.agents.delete("a"))).toMatchObject({ code: "not_found" });
  });
});

describe("a signal", () => {
  test("that has fired lets nothing be sent", async () => {
    const { rota, sent } = open([json({})]);
    expect(await errorOf(rota.stats({ signal: AbortSignal.abort("enough") }))).toBe("enough");
    expect(sent).toEqual([]);
  });

  test("ends a request that is under way", async () => {
    const { rota, sent, clock } = open([silence]);
    const controller = new AbortController();
    const error = errorOf(rota.tasks.submit({ message: "x" }, { signal: controller.signal }));
    await clock.advance(0);
    controller.abort("enough");
    expect(await error).toBe("enough");
    expect([sent[0]?.signal.aborted, sent.length, clock.pending]).toEqual([true, 1, 0]);
  });

  test("ends the wait for another try", async () => {
    const { rota, sent, clock } = open([refusal("draining", 503, { "retry-after": "5" })]);
    const controller = new AbortController();
    const error = errorOf(rota.tasks.retry("tsk_1", { signal: controller.signal }));
    await clock.advance(1_000);
    controller.abort("enough");
    expect(await error).toBe("enough");
    expect([sent.length, clock.pending]).toEqual([1, 0]);
  });
});

describe("options", () => {
  test.each([
    [{ url: "rota.test" }, "url"],
    [{ url: "ftp://rota.test" }, "url"],
    [{ url: "http://rota.test/?a=1" }, "url"],
    [{ url: undefined }, "url"],
    [{ key: "two words" }, "key"],
    [{ key: "" }, "key"],
    [{ retry: { tries: -1 } }, "retry.tries"],
    [{ retry: { attempts: 1 } }, "retry.attempts"],
    [{ retry: 3 }, "retry"],
    [{ timeoutMs: 0 }, "timeoutMs"],
    [{ baseUrl: URL }, "baseUrl"],
  ])("%j are refused", (options, field) => {
    expect(() => new RotaClient({ url: URL, ...options } as RotaClientOptions)).toThrow(
      expect.objectContaining({ code: "invalid_field", details: { field } }),
    );
  });

  test("a password in the URL is refused without being repeated", () => {
    expect(() => new RotaClient({ url: "http://me:secret@rota.test" })).toThrow(
      "`url` must not hold a user or a password: an API key goes into `key`",
    );
  });
});

test("a response that is text is returned as it is", async () => {
  const metrics = "rota_tasks_queued 3\n";
  const { rota, sent } = open([
    () => new Response(metrics, { headers: { "content-type": "text/plain; version=0.0.4" } }),
  ]);
  expect(await rota.metrics()).toBe(metrics);
  expect(sent[0]?.path).toBe("/metrics");
});
