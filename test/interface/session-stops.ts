import { describe, expect, test } from "vitest";
import type { SessionChanges } from "../../src/interface/sessions.ts";
import type { RotaError } from "../../src/model/errors.ts";
import { until } from "../../src/testing/signals.ts";
import { KEY, openConversation } from "./conversation.ts";
import { errorOf, type Open } from "./opened.ts";

const DEFAULTS = {
  agentId: "index",
  lane: "main",
  mode: "queue",
  cap: 10,
  drop: "old",
  debounceMs: 800,
  maxConcurrent: 1,
  effectiveMaxConcurrent: 1,
  tokens: null,
  contextWindow: null,
  generation: 0,
  running: 0,
  queued: 0,
} as const;

export function describeSessionStops(open: Open): void {
  describe("sessions.stop", () => {
    test.each(["/stop", "  /stop\n", "/STOP", "/Stop@some_bot", "the method"])(
      "by %j ends what has been running longest, and the rest goes on",
      async (how) => {
        const {
          api,
          seen,
          say,
          untilMessages: untilTold,
          messages: received,
        } = await openConversation(open, {
          options: { sessions: { maxConcurrent: 2 } },
        });
        const [first, second, third] = [await say("one"), await say("two"), await say("three")];
        await untilTold(2);
        const answer = await (how === "the method"
          ? api.sessions.stop(KEY)
          : api.sessions.send(KEY, { message: how }));
        expect(answer).toEqual({ stopped: [first], cancelled: [] });
        await untilTold(3);
        expect(received).toEqual(["one", "two", "three"]);
        expect(await api.tasks.get(first)).toMatchObject({
          state: "cancelled",
          error: "stopped",
          attempts: [{ outcome: "cancelled" }],
        });
        for (const id of [second, third]) expect(await api.tasks.get(id)).toMatchObject({ state: "running" });
        await until(() => seen.some(({ type }) => type === "task.cancelled"));
        expect(seen.find(({ type }) => type === "task.cancelled")).toMatchObject({
          taskId: first,
          sessionKey: KEY,
          state: "cancelled",
          error: "stopped",
          result: "",
        });
      },
    );

    test("ends the first that waits when none runs, also within the debounce window", async () => {
      const { api } = await open();
      const sent = await api.sessions.send(KEY, { message: "one" });
      expect(sent).toMatchObject({ state: "delayed" });
      expect(await api.sessions.send(KEY, { message: "/stop@bot" })).toEqual({
        stopped: [],
        cancelled: [sent.taskId],
      });
      expect(await api.tasks.get(sent.taskId ?? "")).toMatchObject({ state: "cancelled", error: "stopped" });
    });

    test.each(["/stopall", "/STOPALL", " /StopAll@some_bot "])(
      "by %j ends all that waits",
      async (message) => {
        const { api } = await open();
        const sent = await api.sessions.send(KEY, { message: "one" });
        expect(await api.sessions.send(KEY, { message })).toEqual({ stopped: [], cancelled: [sent.taskId] });
      },
    );

    test("is fine with nothing to do, and makes no session", async () => {
      const { api } = await open();
      for (const word of ["/stop", "/stopall"]) {
        expect(await api.sessions.send(KEY, { message: word })).toEqual({ stopped: [], cancelled: [] });
      }
      expect(await api.sessions.stop(KEY)).toEqual({ stopped: [], cancelled: [] });
      expect(await api.sessions.stopAll(KEY)).toEqual({ stopped: [], cancelled: [] });
      expect(await api.sessions.reset(KEY)).toEqual({ stopped: [], cancelled: [] });
      expect((await api.tasks.counts()).total).toBe(0);
    });

    test("is not what a message says that merely begins so", async () => {
      const { api } = await open();
      for (const message of [
        "/stop it",
        "/stop@",
        "/stop @bot",
        "/stop@bot now",
        "stop",
        "/stopp",
        "/stop/all",
      ]) {
        expect(await api.sessions.send(KEY, { message })).toHaveProperty("taskId");
      }
    });
  });

  describe("sessions.stopAll and sessions.reset", () => {
    test.each([
      ["stopAll", "stopped", 0],
      ["reset", "session_reset", 1],
    ] as const)("%s ends all that runs and waits", async (method, error, generation) => {
      const {
        api,
        say,
        untilMessages: untilTold,
        session,
        messages: received,
        answer,
      } = await openConversation(open);
      const { taskId: later } = await api.tasks.submit({
        agentId: "a",
        message: "later",
        sessionKey: KEY,
        runAt: "2026-01-01T00:00:10Z",
      });
      const [first, second] = [await say("one"), await say("two")];
      await untilTold(1);
      const { stopped, cancelled } = await api.sessions[method](KEY);
      expect(stopped).toEqual([first]);
      expect([...cancelled].sort()).toEqual([second, later].sort());
      for (const id of [first, second, later]) {
        expect(await api.tasks.get(id)).toMatchObject({ state: "cancelled", error });
      }
      expect(await session()).toMatchObject({ running: 0, queued: 0, generation });
      await say("and now");
      await untilTold(2);
      answer("and now");
      expect(received).toEqual(["one", "and now"]);
      expect((await api.stats()).metrics).toMatchObject({ tasksSubmitted: 4, tasksCancelled: 3 });
    });

    test("end and name all of a session that has very many", async () => {
      const { api, rota } = await open({ start: false });
      const inputs = Array.from({ length: 600 }, (_, n) => ({ message: `${n}`, sessionKey: KEY }));
      const tasks = await rota.tasks.submitMany(inputs.slice(0, 90));
      await rota.reload({ scheduler: { maxPerAgent: 1_000 } });
      tasks.push(...(await rota.tasks.submitMany(inputs.slice(90))));
      const { stopped, cancelled } = await api.sessions.stopAll(KEY);
      expect(stopped).toEqual([]);
      expect(new Set(cancelled)).toEqual(new Set(tasks.map(({ taskId }) => taskId)));
      expect(await api.sessions.get(KEY)).toMatchObject({ queued: 0 });
      expect(await api.tasks.get(cancelled.at(-1) ?? "")).toMatchObject({ error: "stopped" });
    });
  });

  describe("sessions.get, list and update", () => {
    test("show a session with all that it does not say filled in", async () => {
      const { api } = await open();
      expect(await errorOf(api.sessions.get(KEY))).toMatchObject({
        code: "not_found",
        message: "session not found",
      });
      await api.sessions.send(KEY, { message: "hi" });
      expect(await api.sessions.get(KEY)).toEqual({ key: KEY, ...DEFAULTS, queued: 1 });
    });

    test("change a session, also before its first message, and take back what is null", async () => {
      const { api } = await open();
      const changes: SessionChanges = {
        agentId: "a",
        lane: "team",
        mode: "interrupt",
        cap: 3,
        drop: "new",
        debounceMs: 0,
        maxConcurrent: 4,
        tokens: 59,
        contextWindow: 100,
      };
      const changed = { key: KEY, ...DEFAULTS, ...changes, effectiveMaxConcurrent: 4 };
      expect(await api.sessions.update(KEY, changes)).toEqual(changed);
      expect(await api.sessions.get(KEY)).toEqual(changed);
      expect(await api.sessions.update(KEY, { tokens: 60 })).toEqual({
        ...changed,
        tokens: 60,
        effectiveMaxConcurrent: 1,
      });
      const nothing = Object.fromEntries(Object.keys(changes).map((field) => [field, null]));
      expect(await api.sessions.update(KEY, nothing)).toEqual({ key: KEY, ...DEFAULTS });
    });

    test.each([
      [{ cap: 0 }, "cap", "`cap` must be an integer from 1 to 10000, not 0"],
      [
        { debounceMs: 60_001 },
        "debounceMs",
        "`debounceMs` must be an integer of milliseconds from 0 to 60000",
      ],
      [{ drop: "both" }, "drop", '`drop` must be old or new, not "both"'],
      [{ tokens: -1 }, "tokens", "`tokens` must be an integer from 0 to"],
      [{ contextWindow: 0 }, "contextWindow", "`contextWindow` must be an integer from 1 to"],
      [{ lane: "no spaces" }, "lane", "`lane` must be the name of a lane"],
      [{ maxConcurent: 2 }, "maxConcurent", "unknown field `maxConcurent`: did you mean `maxConcurrent`?"],
      [{ generation: 2 }, "generation", "unknown field `generation`"],
      [[], undefined, "the changes of a session must be an object"],
    ])("refuse %j, and say why", async (changes, field, sentence) => {
      const { api } = await open({ start: false });
      const error = (await errorOf(api.sessions.update(KEY, changes as never))) as RotaError;
      expect([error.code, error.details?.["field"]]).toEqual(["invalid_field", field]);
      expect(error.message).toContain(sentence);
      expect((await api.sessions.list()).count).toBe(0);
    });

    test("show how full the context is, as the executor reported, and run one at a time from 60 % on", async () => {
      const { api, rota } = await open({ options: { sessions: { debounceMs: 0, maxConcurrent: 2 } } });
      rota.agent("model", (task, { usage }) => {
        usage({ inputTokens: Number(task.message), outputTokens: 0, contextWindow: 100 });
      });
      for (const [tokens, effectiveMaxConcurrent] of [
        [59, 2],
        [60, 1],
        [10, 2],
      ] as const) {
        await api.sessions.ask(KEY, { message: `${tokens}`, agentId: "model" });
        expect(await api.sessions.get(KEY)).toMatchObject({
          tokens,
          contextWindow: 100,
          maxConcurrent: 2,
          effectiveMaxConcurrent,
        });
      }
      await api.sessions.reset(KEY);
      expect(await api.sessions.get(KEY)).toMatchObject({ tokens: null, generation: 1 });
    });

    test("let more start when it is allowed", async () => {
      const { api, say, untilMessages: untilTold } = await openConversation(open);
      for (const message of ["one", "two"]) await say(message);
      await untilTold(1);
      await api.sessions.update(KEY, { maxConcurrent: 2 });
      await untilTold(2);
    });

    test("list sessions page by page, the newest first", async () => {
      const { api } = await open({ start: false });
      for (const key of ["a", "b", "c"]) await api.sessions.send(key, { message: "hi" });
      const first = await api.sessions.list({ limit: 2 });
      expect(first).toMatchObject({ sessions: [{ key: "c" }, { key: "b" }], count: 2 });
      const cursor = first.nextCursor ?? "";
      expect(await api.sessions.list({ limit: 2, cursor })).toEqual({
        sessions: [{ key: "a", ...DEFAULTS, queued: 1 }],
        count: 1,
        nextCursor: null,
      });
      expect(await errorOf(api.sessions.list({ limit: 0 }))).toMatchObject({ details: { field: "limit" } });
    });
  });

  describe("a session's tasks and events", () => {
    test("are found by its key", async () => {
      const { api } = await open({ start: false });
      const events = api.events({ sessionKey: "b", after: 0 });
      for (const key of ["a", "b"]) await api.sessions.send(key, { message: "hi" });
      await api.tasks.submit({ payload: 1 });
      const { taskId } = await api.tasks.submit({ payload: 2, sessionKey: "b" });
      const { tasks } = await api.tasks.list({ sessionKey: "b" });
      expect(tasks.map((task) => [task.taskId === taskId, task.sessionKey])).toEqual([
        [true, "b"],
        [false, "b"],
      ]);
      const seen = [(await events.next()).value, (await events.next()).value];
      expect(seen.map((event) => [event?.type, event?.sessionKey])).toEqual([
        ["task.created", "b"],
        ["task.created", "b"],
      ]);
      await events.return?.();
      for (const call of [
        () => api.tasks.list({ sessionKey: "" }),
        () => api.tasks.submit({ payload: 1, sessionKey: ".." }),
        () => api.events({ sessionKey: "a\nb" }).ready,
      ]) {
        const error = await errorOf((async () => call())());
        expect(error).toMatchObject({ code: "invalid_field", details: { field: "sessionKey" } });
      }
    });
  });
}
