import { describe, expect, test } from "vitest";
import { Latch, until } from "../../src/testing/signals.ts";
import { serve } from "../support/http-server.ts";
import { KEY, openConversation } from "./conversation.ts";
import type { Open, OpenParams } from "./opened.ts";

/** A session whose agent `worker` reads messages and ends when the test lets it. */
async function openSteerable(open: Open, { options = {}, ...rest }: OpenParams = {}) {
  const opened = await open({ ...rest, options: { sessions: { debounceMs: 0 }, ...options } });
  const { api, rota } = opened;
  const attempts: { readonly take: () => Promise<string[]>; readonly end: Latch; failed: boolean }[] = [];
  rota.agent("worker", async (_task, { messages }) => {
    const take = async () => (await messages()).map(({ message }) => message);
    const attempt = { take, end: new Latch(), failed: false };
    attempts.push(attempt);
    await attempt.end.opened;
    if (attempt.failed) throw new Error("lost the thread");
    return "answer";
  });
  const say = async (message: string, mode: "queue" | "steer" | "collect" = "steer") => {
    const { taskId = "" } = await api.sessions.send(KEY, { message, agentId: "worker", mode });
    return taskId;
  };
  const first = await say("go", "queue");
  await until(() => attempts.length === 1, "the first message to run");
  return { ...opened, attempts, say, first };
}

export function describeSessionModes(open: Open): void {
  describe("a message in mode steer", () => {
    test("reaches the running task, and ends with it", async () => {
      const { api, attempts, say, first } = await openSteerable(open);
      const left = await say("left");
      expect(await api.tasks.explain(left)).toMatchObject({
        reasons: [{ code: "session_busy", message: expect.stringContaining("may take this message until") }],
      });
      expect(await attempts[0]?.take()).toEqual(["left"]);
      expect(await attempts[0]?.take()).toEqual([]);
      expect(await api.tasks.explain(left)).toMatchObject({
        state: "queued",
        reasons: [{ code: "taken", taskId: first }],
      });
      attempts[0]?.end.open();
      expect(await api.tasks.wait(left)).toMatchObject({ state: "done", result: { steeredInto: first } });
      expect(await api.tasks.get(first)).toMatchObject({ state: "done", result: "answer" });
      expect(attempts).toHaveLength(1);
    });

    test("runs by itself if the running task does not take it in time", async () => {
      const { api, attempts, say, clock } = await openSteerable(open, {
        options: { sessions: { debounceMs: 0, steerMs: 100 } },
      });
      const late = await say("late");
      await clock.advance(100);
      expect(await attempts[0]?.take()).toEqual([]);
      attempts[0]?.end.open();
      await until(() => attempts.length === 2, "the message to run");
      attempts[1]?.end.open();
      expect(await api.tasks.wait(late)).toMatchObject({ state: "done", result: "answer" });
    });

    test("waits again when the task that took it is tried again", async () => {
      const { api, attempts, clock } = await openSteerable(open);
      await api.sessions.reset(KEY);
      const { taskId } = await api.tasks.submit({
        message: "try",
        agentId: "worker",
        sessionKey: KEY,
        retryPolicy: { maxRetries: 1, backoffMs: 10 },
      });
      await until(() => attempts.length === 2, "the task to run");
      const { taskId: steered = "" } = await api.sessions.send(KEY, {
        message: "left",
        agentId: "worker",
        mode: "steer",
      });
      const [, one] = attempts;
      expect(await one?.take()).toEqual(["left"]);
      if (one !== undefined) one.failed = true;
      one?.end.open();
      await until(async () => (await api.tasks.get(taskId)).state === "delayed", "the retry");
      await clock.advance(10_000);
      await until(() => attempts.length === 3, "the second attempt");
      attempts[2]?.end.open();
      await until(() => attempts.length === 4, "the message to run by itself");
      attempts[3]?.end.open();
      expect(await api.tasks.wait(steered)).toMatchObject({ state: "done", result: "answer" });
    });
  });

  describe("messages in mode collect", () => {
    test("become one message once the turn before them has ended", async () => {
      const { api, say, answer, untilMessages, messages } = await openConversation(open);
      await say("first", { mode: "collect" });
      await untilMessages(1);
      const one = await say("one", { mode: "collect" });
      const two = await api.sessions.send(KEY, { message: "two", agentId: "a", mode: "collect" });
      expect(two).toMatchObject({ taskId: one, merged: true });
      answer("first");
      await untilMessages(2);
      expect(messages).toEqual(["first", "one\ntwo"]);
    });
  });

  describe("a dropped message", () => {
    test("is reported to its sender: by the task it waits for, an event and its callback", async () => {
      const bodies: { taskId: string; state: string; error: string }[] = [];
      const url = await serve((_request, response, body) => {
        bodies.push(JSON.parse(body));
        response.writeHead(204).end();
      });
      const { api, say, seen, untilMessages } = await openConversation(open, {
        options: { sessions: { cap: 1 }, webhooks: { allow: ["127.0.0.1"] } },
      });
      await say("runs");
      await untilMessages(1);
      const dropped = await say("one", { callbackUrl: `${url}/hook` });
      const waiting = api.tasks.wait(dropped);
      await say("two");
      const end = { taskId: dropped, state: "cancelled", error: "queue_dropped" };
      expect(await waiting).toMatchObject(end);
      await until(() => bodies.length === 1, "the callback");
      expect(bodies).toMatchObject([end]);
      await until(() => seen.some(({ taskId, type }) => taskId === dropped && type === "task.cancelled"));
      expect(seen).toContainEqual(
        expect.objectContaining({
          type: "task.cancelled",
          taskId: dropped,
          error: "queue_dropped",
          result: "",
        }),
      );
    });
  });
}
