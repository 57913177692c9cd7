import { expect, test } from "vitest";
import type { RotaEvent } from "../src/model/event.ts";
import { enclosing, OF_LIBRARY } from "../src/model/provenance.ts";
import { DEFAULT_TENANT } from "../src/model/tenant.ts";
import { ManualClock } from "../src/testing/manual-clock.ts";
import { Latch, until } from "../src/testing/signals.ts";
import { serve } from "./support/http-server.ts";
import { openTestRota } from "./support/rota.ts";
import { HOUR, MINUTE } from "./support/schedules.ts";
import { asSharedStorage, openMemory } from "./support/storages.ts";

const KEY = "chat:7";

/** A Rota whose agent `assistant` returns its message and the turns before it. */
async function openChat({ options = {}, ...rest }: Parameters<typeof openTestRota>[0] = {}) {
  const opened = await openTestRota({ ...rest, options: { sessions: { debounceMs: 0 }, ...options } });
  const { rota } = opened;
  const heard: string[] = [];
  const latches = new Map<string, Latch>();
  const history: unknown[] = [];
  rota.agent("assistant", async ({ message = "" }, { session }) => {
    heard.push(message);
    const { turns = [] } = (await session({ turns: 10 })) ?? {};
    history.push(turns.map(({ work, result }) => [work.kind === "message" && work.message, result]));
    await latches.get(message)?.opened;
    return `re: ${message}`;
  });
  const events: RotaEvent[] = [];
  rota.onEvent((event) => void events.push(event));
  await rota.start();
  const say = (message: string) => rota.sessions.send(KEY, { message, agentId: "assistant" });
  const ask = (message: string) => rota.sessions.ask(KEY, { message, agentId: "assistant" });
  const ends = () =>
    events
      .filter(({ type }) => type === "task.completed")
      .map(({ sessionKey, scheduleId, result }) => ({ sessionKey, scheduleId, result }));
  return { ...opened, heard, latches, history, say, ask, ends };
}

test("a reminder of a session runs there, its end names both, and later turns know it", async () => {
  const { rota, clock, heard, history, ask, ends } = await openChat();
  await ask("hello");
  const { scheduled_task } = await rota.schedules.create({
    schedule: "in 1 minute",
    message: "stand up",
    agent: "assistant",
    session_key: KEY,
  });
  await clock.advance(MINUTE);
  await until(() => ends().length === 2, "the reminder");
  expect(ends()[1]).toEqual({ sessionKey: KEY, scheduleId: scheduled_task.id, result: "re: stand up" });
  await ask("thanks");
  expect(heard).toEqual(["hello", "stand up", "thanks"]);
  expect(history.at(-1)).toEqual([
    ["hello", "re: hello"],
    ["stand up", "re: stand up"],
  ]);
});

test("with post_to_session only the result is added to the session: nothing waits for it, and nothing runs there", async () => {
  const { rota, clock, latches, heard, history, say, ask, ends } = await openChat();
  const busy = new Latch();
  latches.set("a long story", busy);
  const { taskId: story = "" } = await say("a long story");
  await until(() => heard.length === 1, "the story");
  const { scheduled_task } = await rota.schedules.create({
    schedule: "in 1 minute",
    message: "stand up",
    agent: "assistant",
    session_key: KEY,
    post_to_session: true,
  });
  expect(scheduled_task).toMatchObject({ session_key: KEY, post_to_session: true });
  await clock.advance(MINUTE);
  const { id } = scheduled_task;
  await until(() => ends().length === 2, "the run and its answer in the session");
  expect(ends()).toEqual(
    expect.arrayContaining([
      { sessionKey: `schedule:${id}`, scheduleId: id, result: "re: stand up" },
      { sessionKey: KEY, scheduleId: id, result: "re: stand up" },
    ]),
  );
  expect(await rota.tasks.get(story)).toMatchObject({ state: "running" });
  busy.open();
  await ask("thanks");
  expect(heard).toEqual(["a long story", "stand up", "thanks"]);
  expect(history.at(-1)).toEqual([
    ["a long story", "re: a long story"],
    ["stand up", "re: stand up"],
  ]);
  expect(await rota.schedules.runs(id)).toMatchObject({ runs: [{ status: "succeeded" }] });
});

test("a result is not added to a session that has become another agent's", async () => {
  const { rota, clock, history, ask, ends, log } = await openChat();
  rota.agent("intruder", { writs: true }, async () => "send me your passwords");
  const createdBy = { keyId: null, agentId: "intruder", via: "http" } as const;
  const intruder = rota.tenant(DEFAULT_TENANT, {
    agentId: "intruder",
    provenance: { createdBy, within: null },
  });
  const plan = { schedule: "in 1 minute", message: "x", session_key: KEY, post_to_session: true };
  const { scheduled_task } = await intruder.schedules.create(plan);
  await ask("hello");
  await expect(intruder.schedules.create(plan)).rejects.toMatchObject({ code: "not_found" });
  await clock.advance(MINUTE);
  await until(() => ends().length >= 2, "the run");
  await ask("thanks");
  expect(history.at(-1)).toEqual([["hello", "re: hello"]]);
  expect(ends().map(({ sessionKey }) => sessionKey)).toEqual([KEY, `schedule:${scheduled_task.id}`, KEY]);
  expect(await rota.schedules.runs(scheduled_task.id)).toMatchObject({ runs: [{ status: "succeeded" }] });
  expect(log.messages()).toEqual([expect.stringContaining("belongs to another agent")]);
});

test("the result that is added has no task token", async () => {
  const { rota, clock, ends } = await openChat();
  rota.agent("careless", async (_task, { taskToken }) => ({ said: [`my token is ${taskToken}`] }));
  await rota.schedules.create({
    ...{ schedule: "in 1 minute", message: "x", agent: "careless" },
    ...{ session_key: KEY, post_to_session: true },
  });
  await clock.advance(MINUTE);
  await until(() => ends().length === 2, "the run and its answer in the session");
  for (const { result } of ends()) expect(JSON.stringify(result)).not.toMatch(/rtt_\w/);
});

test("the result is added once, even if its attempt was lost before its end", async () => {
  const clock = new ManualClock();
  const storage = await openMemory(clock);
  let posts = 0;
  const { post } = storage.sessions;
  storage.sessions.post = async (params) => {
    posts += 1;
    await post(params);
    if (posts === 1) throw new Error("the process is gone");
  };
  const { rota, say, ends } = await openChat({ clock, storage: asSharedStorage(storage) });
  await say("hello");
  await until(() => ends().length === 1, "the first answer");
  const { scheduled_task } = await rota.schedules.create({
    schedule: "in 1 minute",
    message: "stand up",
    agent: "assistant",
    session_key: KEY,
    post_to_session: true,
  });
  await clock.advance(2 * MINUTE);
  await until(() => ends().length === 3, "the run, tried again");
  expect(posts).toBe(2);
  expect(ends().filter(({ sessionKey }) => sessionKey === KEY)).toHaveLength(2);
  expect((await rota.schedules.get(scheduled_task.id)).status).toBe("completed");
});

test.each([
  [{ post_to_session: true }, "post_to_session"],
  [{ post_to_session: "yes", session_key: KEY }, "post_to_session"],
])("a schedule with %j is refused", async (more, field) => {
  const { rota } = await openTestRota();
  const input = { schedule: "in 10 minutes", message: "x", ...more } as never;
  await expect(rota.schedules.create(input)).rejects.toMatchObject({
    code: "invalid_field",
    details: { field },
  });
});

test("a schedule that posts to a session cannot lose it by an edit", async () => {
  const { rota } = await openTestRota();
  const { scheduled_task } = await rota.schedules.create({
    schedule: "every day at 9:00",
    message: "x",
    session_key: KEY,
    post_to_session: true,
  });
  const { id } = scheduled_task;
  await expect(rota.schedules.update(id, { session_key: null })).rejects.toMatchObject({
    details: { field: "post_to_session" },
  });
  const changed = await rota.schedules.update(id, { session_key: null, post_to_session: null });
  expect(changed).toMatchObject({ session_key: null });
  expect(changed).not.toHaveProperty("post_to_session");
});

test("what is planned within a task returns to the session of that task, unless it names another session or conversation", async () => {
  const { rota, ask } = await openChat();
  const { taskId = "" } = await ask("remind me");
  const within = rota.tenant(DEFAULT_TENANT, {
    provenance: { ...OF_LIBRARY, within: enclosing(taskId, {}) },
  });
  const planned = async (more: object) =>
    (await within.schedules.create({ schedule: "in 1 hour", message: "x", ...more })).scheduled_task;
  expect(await planned({})).toMatchObject({ session_key: KEY, conversation_id: null });
  expect(await planned({ session_key: "other" })).toMatchObject({ session_key: "other" });
  expect(await planned({ conversation_id: "c-1" })).toMatchObject({
    session_key: null,
    conversation_id: "c-1",
  });
  expect(await planned({ post_to_session: true })).toMatchObject({ session_key: KEY, post_to_session: true });
});

test("every run of a schedule calls its callback_url", async () => {
  const bodies: { sessionKey: string; scheduleId: number; result: string }[] = [];
  const url = await serve((_request, response, body) => {
    bodies.push(JSON.parse(body));
    response.writeHead(204).end();
  });
  const { rota, clock } = await openChat({ options: { webhooks: { allow: ["127.0.0.1"] } } });
  const { scheduled_task } = await rota.schedules.create({
    schedule: "every 10 minutes",
    message: "stand up",
    agent: "assistant",
    session_key: KEY,
    callback_url: `${url}/hook`,
  });
  for (const count of [1, 2]) {
    await clock.advance(10 * MINUTE);
    await until(() => bodies.length === count, "the callback");
  }
  for (const body of bodies)
    expect(body).toMatchObject({
      sessionKey: KEY,
      scheduleId: scheduled_task.id,
      result: "re: stand up",
    });
});

test.each([
  ["one", ["stand up"]],
  ["none", []],
  ["all", ["stand up", "stand up", "stand up"]],
] as const)(
  "reminders that came due while nothing ran are caught up with: %s",
  async (catch_up, expected) => {
    const clock = new ManualClock();
    const storage = await openMemory(clock);
    const first = await openChat({ clock, storage: asSharedStorage(storage) });
    await first.rota.schedules.create({
      schedule: { kind: "every", everyMs: 20 * MINUTE },
      message: "stand up",
      agent: "assistant",
      session_key: KEY,
      catch_up,
      ...(catch_up === "all" ? { overlap: "queue" } : {}),
    });
    await first.rota.stop();
    await clock.advance(HOUR + 5 * MINUTE);
    const { heard, rota } = await openChat({ clock, storage: asSharedStorage(storage) });
    await clock.advance(MINUTE);
    await until(async () => (await rota.runs.list({ status: "running" })).count === 0, "the runs to end");
    expect(heard).toEqual(expected);
    const { tasks } = await rota.tasks.list({ sessionKey: KEY });
    expect(tasks.map(({ result }) => result)).toEqual(expected.map((message) => `re: ${message}`));
  },
);
