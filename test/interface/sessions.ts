import { describe, expect, test } from "vitest";
import { RotaError } from "../../src/model/errors.ts";
import { until } from "../../src/testing/signals.ts";
import { KEY, openConversation } from "./conversation.ts";
import { errorOf, type Open } from "./opened.ts";

export function describeSessions(open: Open): void {
  describe("sessions.send", () => {
    test("makes a message of the session, which runs in its turn", async () => {
      const { api, clock } = await open();
      const sent = await api.sessions.send(KEY, { message: "hello" });
      expect(sent).toEqual({ taskId: expect.any(String), state: "delayed", position: 0, merged: false });
      await clock.advance(800);
      expect(await api.tasks.wait(sent.taskId ?? "")).toMatchObject({
        kind: "message",
        message: "hello",
        sessionKey: KEY,
        agentId: "index",
        lane: "main",
        state: "done",
        result: "hello",
        timeout: 120_000,
        retryPolicy: { maxRetries: 0 },
      });
    });

    test("goes to whom, and where, the message says, else the session, else the agent", async () => {
      const { api, rota } = await openConversation(open, {
        options: { agents: { b: { lane: "subagent" } } },
      });
      const whereTo = async (more: object) => {
        const { taskId = "" } = await api.sessions.send("s", { message: "hi", ...more });
        const { agentId, lane } = await rota.tasks.get(taskId);
        return [agentId, lane];
      };
      expect(await whereTo({})).toEqual(["index", "main"]);
      expect(await whereTo({ agentId: "b" })).toEqual(["b", "subagent"]);
      expect(await whereTo({})).toEqual(["b", "subagent"]);
      expect(await whereTo({ lane: "team" })).toEqual(["b", "team"]);
      expect(await whereTo({})).toEqual(["b", "team"]);
      expect(await whereTo({ agentId: "index" })).toEqual(["index", "main"]);
      await api.sessions.update("s", { agentId: "a", lane: "team" });
      expect(await whereTo({})).toEqual(["a", "team"]);
      expect(await whereTo({ lane: "no such lane" })).toEqual(["a", "main"]);
    });

    test("runs one at a time, in the order they were sent, whatever else is submitted for the session", async () => {
      const {
        api,
        messages: received,
        say,
        answer,
        untilMessages: untilTold,
        session,
      } = await openConversation(open);
      await say("one");
      const task = { agentId: "a", message: "two", sessionKey: KEY, priority: "critical" } as const;
      const { taskId } = await api.tasks.submit(task);
      await say("three");
      await untilTold(1);
      expect(await session()).toMatchObject({ running: 1, queued: 2 });
      answer("one");
      await untilTold(2);
      answer("two");
      await untilTold(3);
      answer("three");
      expect(received).toEqual(["one", "two", "three"]);
      expect(await api.tasks.get(taskId)).toMatchObject({ sessionKey: KEY, lane: "main" });
      await until(async () => (await session()).running === 0);
    });

    test("says of one that waits whom it waits for", async () => {
      const { api, say, untilMessages: untilTold } = await openConversation(open);
      const [first, second] = [await say("one"), await say("two")];
      await untilTold(1);
      expect(await api.tasks.explain(second)).toMatchObject({
        state: "queued",
        position: 0,
        reasons: [
          {
            code: "session_busy",
            message: `the session "${KEY}" is busy with ${first}; the session runs 1 at once`,
            taskId: first,
          },
        ],
      });
    });

    test("runs as many at once as a message said, from then on", async () => {
      const { say, untilMessages: untilTold, session } = await openConversation(open);
      await say("one", { maxConcurrent: 2 });
      await say("two");
      await say("three");
      await untilTold(2);
      expect(await session()).toMatchObject({ maxConcurrent: 2, running: 2, queued: 1 });
    });

    test("is not refused because many tasks wait, and is not counted among them", async () => {
      const { api, say } = await openConversation(open, {
        options: { scheduler: { maxQueueSize: 1, maxPerAgent: 1 } },
        start: false,
      });
      await api.tasks.submit({ agentId: "a", payload: 1 });
      for (const message of ["one", "two", "three"]) expect(await say(message)).not.toBe("");
      expect(await errorOf(api.tasks.submit({ agentId: "a", payload: 2 }))).toMatchObject({
        code: "queue_full",
      });
    });

    test.each([
      [KEY, {}, "message"],
      [KEY, { message: " " }, "message"],
      [KEY, { message: 5 }, "message"],
      [KEY, { message: "hi", agentId: "no\nagent" }, "agentId"],
      [KEY, { message: "hi", lane: 1 }, "lane"],
      [KEY, { message: "hi", mode: "interupt" }, "mode"],
      [KEY, { message: "hi", maxConcurrent: 0 }, "maxConcurrent"],
      [KEY, { messages: "hi" }, "messages"],
      [KEY, { message: "hi", wait: true }, "wait"],
      [KEY, { message: "/stop", mode: "now" }, "mode"],
      [KEY, null, undefined],
      ["..", { message: "hi" }, "key"],
      ["a\0b", { message: "hi" }, "key"],
      ["x".repeat(257), { message: "hi" }, "key"],
    ])("refuses to say to %j %j, and says why, the same to every caller", async (key, input, field) => {
      const { api, rota } = await open({ start: false });
      const error = (await errorOf(api.sessions.send(key, input as never))) as RotaError;
      const expected = (await errorOf(rota.sessions.send(key, input as never))) as RotaError;
      expect(error).toBeInstanceOf(RotaError);
      expect(error.toJSON()).toEqual(expected.toJSON());
      expect([error.code, error.details?.["field"]]).toEqual(["invalid_field", field]);
      expect((await api.tasks.counts()).total + (await api.sessions.list()).count).toBe(0);
    });

    test("takes nothing while it drains, but still stops what runs", async () => {
      const { api, rota, say, untilMessages: untilTold } = await openConversation(open);
      const running = await say("one");
      await untilTold(1);
      const drained = rota.drain();
      expect(await errorOf(say("late"))).toMatchObject({ code: "draining", retryable: true });
      expect(await api.sessions.send(KEY, { message: "/stop" })).toEqual({
        stopped: [running],
        cancelled: [],
      });
      await drained;
    });
  });

  describe("messages within the debounce", () => {
    test("become one run, with their texts in lines", async () => {
      const { api, clock } = await open();
      const sent = [];
      for (let n = 1; n <= 10; n++) {
        sent.push(await api.sessions.send(KEY, { message: `line ${n}` }));
        await clock.advance(100);
      }
      expect(new Set(sent.map(({ taskId }) => taskId)).size).toBe(1);
      expect(sent.map(({ merged }) => merged)).toEqual([false, ...Array(9).fill(true)]);
      await clock.advance(699);
      const id = sent[0]?.taskId ?? "";
      expect(await api.tasks.get(id)).toMatchObject({ state: "delayed" });
      await clock.advance(1);
      expect(await api.tasks.wait(id)).toMatchObject({
        result: Array.from({ length: 10 }, (_, n) => `line ${n + 1}`).join("\n"),
      });
      expect((await api.tasks.counts()).total).toBe(1);
    });

    test("wait no longer than five windows, however fast they keep coming", async () => {
      const { api, clock } = await open();
      const ids = new Set<string | undefined>();
      for (let ms = 0; ms < 4_000; ms += 500) {
        ids.add((await api.sessions.send(KEY, { message: "and" })).taskId);
        await clock.advance(500);
      }
      expect(ids.size).toBe(1);
      const [first = ""] = ids;
      expect(await api.tasks.wait(first)).toMatchObject({ startedAt: "2026-01-01T00:00:04.000Z" });
      expect((await api.sessions.send(KEY, { message: "more" })).taskId).not.toBe(first);
    });

    test("stay apart when they are for others", async () => {
      const { api } = await open({ start: false });
      const send = async (more: object) => (await api.sessions.send(KEY, { message: "hi", ...more })).taskId;
      const ids = [
        await send({ agentId: "a" }),
        await send({ agentId: "b" }),
        await send({ agentId: "b", lane: "team" }),
        await send({ agentId: "b", lane: "team", mode: "followup" }),
      ];
      expect(new Set(ids).size).toBe(4);
      expect(await send({ mode: "followup" })).toBe(ids[3]);
    });
  });

  describe("a message that interrupts", () => {
    test("takes the place of all that runs and waits, at once", async () => {
      const {
        api,
        seen,
        messages: received,
        say,
        answer,
        untilMessages: untilTold,
      } = await openConversation(open);
      const [first, second] = [await say("one"), await say("two")];
      await untilTold(1);
      const third = await say("no, this", { mode: "interrupt" });
      await untilTold(2);
      answer("no, this");
      expect(await api.tasks.wait(third)).toMatchObject({ state: "done", result: "re: no, this" });
      expect(received).toEqual(["one", "no, this"]);
      for (const id of [first, second]) {
        expect(await api.tasks.get(id)).toMatchObject({ state: "cancelled", error: "interrupted" });
      }
      const ends = seen.filter(({ type }) => type === "task.cancelled");
      expect(ends).toHaveLength(2);
      for (const end of ends) {
        expect(end).toMatchObject({ sessionKey: KEY, error: "interrupted", result: "" });
      }
    });

    test("does not wait for the debounce, and takes what did along", async () => {
      const {
        api,
        say,
        untilMessages: untilTold,
        messages: received,
      } = await openConversation(open, {
        options: { sessions: { debounceMs: 800 } },
      });
      const waiting = await say("one");
      await say("now", { mode: "interrupt" });
      await untilTold(1);
      expect(received).toEqual(["now"]);
      expect(await api.tasks.get(waiting)).toMatchObject({ error: "interrupted" });
    });
  });

  describe("a session that is full", () => {
    test("lets the message go that waits longest", async () => {
      const {
        api,
        say,
        untilMessages: untilTold,
        session,
      } = await openConversation(open, {
        options: { sessions: { cap: 2 } },
      });
      await say("runs");
      await untilTold(1);
      const [first, second, third] = [await say("one"), await say("two"), await say("three")];
      expect(await api.tasks.get(first)).toMatchObject({ state: "cancelled", error: "queue_dropped" });
      for (const id of [second, third]) expect(await api.tasks.get(id)).toMatchObject({ state: "queued" });
      expect(await session()).toMatchObject({ running: 1, queued: 2, cap: 2, drop: "old" });
    });

    test("refuses the one that comes, if it is set to, and stores nothing", async () => {
      const { api, say, untilMessages: untilTold } = await openConversation(open);
      await api.sessions.update(KEY, { cap: 1, drop: "new" });
      await say("runs");
      await untilTold(1);
      await say("waits");
      expect(await errorOf(say("too much"))).toMatchObject({
        code: "queue_full",
        message: `the session "${KEY}" has 1 waiting message, and its \`cap\` is 1: retry later, or raise \`cap\``,
        retryable: true,
        details: { waiting: 1, cap: 1 },
      });
      expect((await api.tasks.counts()).total).toBe(2);
    });
  });

  describe("sessions.ask", () => {
    test("returns the outcome of the message", async () => {
      const { api, untilMessages: untilTold, answer } = await openConversation(open);
      const asked = api.sessions.ask(KEY, { message: "why?", agentId: "a" });
      await untilTold(1);
      answer("why?");
      expect(await asked).toMatchObject({ state: "done", result: "re: why?", sessionKey: KEY });
    });

    test("times out as requested, and the message goes on", async () => {
      const { api, clock, untilMessages: untilTold, session } = await openConversation(open);
      const asked = errorOf(api.sessions.ask(KEY, { message: "why?", agentId: "a" }, { timeoutMs: 1_000 }));
      await untilTold(1);
      await clock.advance(1_000);
      expect(await asked).toMatchObject({ name: "TimeoutError" });
      const controller = new AbortController();
      const { signal } = controller;
      const again = errorOf(api.sessions.ask(KEY, { message: "and?", agentId: "a" }, { signal }));
      await until(async () => (await session()).queued === 1);
      controller.abort(new Error("never mind"));
      expect(await again).toMatchObject({ message: "never mind" });
      expect(await session()).toMatchObject({ running: 1, queued: 1 });
      expect(await errorOf(api.sessions.ask(KEY, { message: "hi" }, { timeoutMs: 0 }))).toMatchObject({
        code: "invalid_field",
        details: { field: "timeoutMs" },
      });
    });

    test("returns the tasks that a stop word ended", async () => {
      const { api } = await open();
      expect(await api.sessions.ask(KEY, { message: "/stopall" })).toEqual({ stopped: [], cancelled: [] });
    });
  });

  describe("sessions.delete", () => {
    test("forgets what is set of an idle session, and goes with its tasks", async () => {
      const { api, say, answer, untilMessages: untilTold, session } = await openConversation(open);
      await api.sessions.update(KEY, { cap: 3 });
      await say("one");
      await untilTold(1);
      expect(await errorOf(api.sessions.delete(KEY))).toMatchObject({
        code: "conflict",
        message: `session "${KEY}" is not idle: 1 task of it runs or waits; first send \`POST /v1/sessions/{key}/stopall\`, or run \`rota stop KEY --all\``,
        details: { open: 1 },
      });
      answer("one");
      await until(async () => (await session()).running === 0);
      expect(await api.sessions.delete(KEY)).toEqual({ deleted: true });
      expect(await session()).toMatchObject({ cap: 10, agentId: "index" });
      expect((await api.tasks.list({ sessionKey: KEY })).count).toBe(1);
      await api.sessions.update("unused", { cap: 3 });
      await api.sessions.delete("unused");
      expect(await errorOf(api.sessions.get("unused"))).toMatchObject({ code: "not_found" });
      expect(await errorOf(api.sessions.delete(""))).toMatchObject({ code: "invalid_field" });
    });
  });
}
