import { expect, test } from "vitest";
import { openStream } from "../../../test/support/event-stream.ts";
import { openTestServer } from "../../../test/support/http.ts";
import { event, gap } from "../../api/events.ts";
import { EVENT_TYPES } from "../../model/event.ts";
import { Latch, until } from "../../testing/signals.ts";

test.each(["", "/v1"])(
  "%s/tasks/events says at once that it is open, and then what happens",
  async (prefix) => {
    const { ask, url } = await openTestServer();
    const stream = await openStream(`${url}${prefix}/tasks/events`);
    expect([
      stream.status,
      ...["content-type", "cache-control", "x-accel-buffering"].map((name) => stream.headers.get(name)),
    ]).toEqual([200, "text/event-stream; charset=utf-8", "no-store", "no"]);
    expect(await stream.next()).toEqual({ retry: "1000", id: "0" });
    const { taskId } = (await ask("/tasks", { json: { payload: { n: 1 } } })).body;
    const frames = await stream.take(3);
    expect(frames.map(({ id, event: type }) => [id, type])).toEqual([
      ["1", "task.created"],
      ["2", "task.started"],
      ["3", "task.completed"],
    ]);
    for (const { data, event: type } of frames) {
      expect(event.parse(data)).toMatchObject({ type, taskId, agentId: "index", lane: "tasks" });
    }
    expect(frames.at(-1)?.data).toMatchObject({ state: "done", result: { n: 1 } });
  },
);

test("every type of event is as the schema says", async () => {
  const { ask, url, rota, clock } = await openTestServer({
    options: { scheduler: { maxPerAgent: 1, workerCount: 1 } },
  });
  rota.agent("patient", (_task, { signal }) => {
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  });
  rota.agent("failing", async (_task, { progress }) => {
    progress({ at: "half" });
    await new Promise((resolve) => setImmediate(resolve));
    throw new Error("no luck");
  });
  const stream = await openStream(`${url}/tasks/events`);
  await stream.next();
  await ask("/tasks", { json: { agentId: "failing", payload: 1, retryPolicy: { maxRetries: 1 } } });
  const seen = new Set<string>();
  const untilSeen = async (type: string) => {
    for (let frame = await stream.next(); frame !== undefined; frame = await stream.next()) {
      seen.add(event.parse(frame.data).type);
      if (frame.event === type) return;
    }
  };
  await untilSeen("task.retrying");
  await clock.advance(1_000);
  await untilSeen("task.failed");
  const later = { agentId: "late", payload: 1, runAt: "2100-01-01T00:00:00Z" };
  const { taskId } = (await ask("/tasks/batch", { json: { tasks: [later] } })).body.tasks[0];
  await ask("/tasks", { json: later });
  await untilSeen("task.rejected");
  await ask(`/tasks/${taskId}`, { method: "DELETE" });
  await untilSeen("batch.completed");
  await ask("/tasks", { json: { agentId: "patient", payload: 1, preemptible: true } });
  await untilSeen("task.started");
  await ask("/tasks", { json: { payload: 1, priority: "critical" } });
  await untilSeen("task.completed");
  expect([...seen].sort()).toEqual([...EVENT_TYPES].sort());
});

test("goes on after the event that was seen last, without gap or doubling", async () => {
  const { ask, url } = await openTestServer({ start: false });
  const submit = () => ask("/tasks", { json: { payload: 1 } });
  const first = await openStream(`${url}/tasks/events`);
  await first.next();
  await submit();
  await submit();
  const seen = await first.take(1);
  first.close();
  await submit();

  const second = await openStream(`${url}/tasks/events`, { "Last-Event-ID": seen[0]?.id as string });
  await second.next();
  await submit();
  expect((await second.take(3)).map(({ id }) => id)).toEqual(["2", "3", "4"]);
});

test.each([
  ["the header, 0 for all", "/tasks/events", { "Last-Event-ID": "0" }, "1"],
  ["the query", "/tasks/events?lastEventId=1", {}, "2"],
  ["the header rather than the query", "/tasks/events?lastEventId=0", { "Last-Event-ID": "2" }, "3"],
])("begins where %s says", async (_what, path, headers, firstId) => {
  const { ask, url } = await openTestServer({ start: false });
  for (let tasks = 0; tasks < 3; tasks++) await ask("/tasks", { json: { payload: 1 } });
  const stream = await openStream(url + path, headers as Record<string, string>);
  expect((await stream.take(2)).at(1)?.id).toBe(firstId);
});

test.each(["x", "-1", "1.5", "1e3", "99999999999999999", " 1 2", "0x10"])(
  "refuses the Last-Event-ID %s, by name",
  async (id) => {
    const { ask } = await openTestServer({ start: false });
    for (const answer of [
      await ask("/tasks/events", { headers: { "Last-Event-ID": id } }),
      await ask(`/tasks/events?lastEventId=${encodeURIComponent(id)}`),
    ]) {
      expect([answer.status, answer.body.code, answer.body.details]).toEqual([
        400,
        "invalid_field",
        { field: "Last-Event-ID" },
      ]);
    }
  },
);

test.each(["agentId=a&agentId=b", "agentId=%00", "batchId=%00", "batchId=a&batchId=b", "agent=a"])(
  "refuses ?%s, and leaves no stream behind",
  async (query) => {
    const { ask } = await openTestServer({ start: false });
    const { status, body } = await ask(`/tasks/events?${query}`);
    expect([status, body.code]).toEqual([400, "invalid_field"]);
  },
);

test("says first that events are missing which would have come", async () => {
  const { ask, url, storage } = await openTestServer({ start: false });
  for (let tasks = 0; tasks < 3; tasks++) {
    const { taskId } = (await ask("/tasks", { json: { payload: 1 } })).body;
    await ask(`/tasks/${taskId}`, { method: "DELETE" });
  }
  await storage.tasks.prune({ retentionMs: -1, rejectedMax: 0, limit: 4 });
  await ask("/tasks", { json: { payload: 1 } });
  const { oldest } = await storage.events.range();
  expect(oldest).toBeGreaterThan(2);

  const stream = await openStream(`${url}/tasks/events`, { "Last-Event-ID": "1" });
  const [, missing, next] = await stream.take(3);
  expect([missing?.event, gap.parse(missing?.data)]).toEqual(["gap", { after: 1, oldest }]);
  expect(missing?.id).toBeUndefined();
  expect(next?.id).toBe(String(oldest));
});

test("shows one agent or one batch alone", async () => {
  const { ask, url } = await openTestServer({ start: false });
  const { batchId } = (
    await ask("/tasks/batch", {
      json: {
        tasks: [
          { agentId: "a", payload: 1 },
          { agentId: "b", payload: 2 },
        ],
      },
    })
  ).body;
  await ask("/tasks", { json: { agentId: "b", payload: 3 } });
  const ofAgent = await openStream(`${url}/tasks/events?agentId=b&lastEventId=0`);
  const ofBatch = await openStream(`${url}/tasks/events?batchId=${batchId}&lastEventId=0`);
  const ofBoth = await openStream(`${url}/tasks/events?batchId=${batchId}&agentId=b`);
  await ask("/tasks", { json: { agentId: "a", payload: 4 } });
  await ask("/tasks", { json: { agentId: "b", payload: 5 } });
  const batch = (await ask(`/tasks?batchId=${batchId}&agentId=b`)).body.tasks[0];
  await ask(`/tasks/${batch.taskId}`, { method: "DELETE" });

  const idsOf = async (stream: Awaited<ReturnType<typeof openStream>>, count: number) =>
    (await stream.take(count + 1)).slice(1).map(({ id }) => id);
  expect(await idsOf(ofAgent, 4)).toEqual(["2", "3", "5", "6"]);
  expect(await idsOf(ofBatch, 3)).toEqual(["1", "2", "6"]);
  expect(await idsOf(ofBoth, 1)).toEqual(["6"]);
});

test("gives a sign of life every 15 seconds", async () => {
  const { url, clock } = await openTestServer({ start: false });
  const stream = await openStream(`${url}/tasks/events`);
  await stream.next();
  await clock.advance(14_999);
  await clock.advance(1);
  expect(await stream.next()).toEqual({ comment: "still here", id: "0" });
  await clock.advance(30_000);
  expect(await stream.take(2)).toEqual(Array(2).fill({ comment: "still here", id: "0" }));
});

test("goes on while the node drains, and ends when it stops", async () => {
  const { ask, url, rota } = await openTestServer();
  const latch = new Latch();
  rota.agent("slow", () => latch.opened);
  const stream = await openStream(`${url}/tasks/events`);
  await stream.next();
  await ask("/tasks", { json: { agentId: "slow", payload: 1 } });
  await stream.take(2);
  const drained = rota.drain();
  await until(() => rota.state === "draining");
  const late = await openStream(`${url}/tasks/events`);
  latch.open();
  await drained;
  expect((await stream.next())?.event).toBe("task.completed");
  expect((await late.take(2)).at(1)?.event).toBe("task.completed");
  await rota.stop();
  expect([await stream.next(), await late.next()]).toEqual([undefined, undefined]);
});

test("HEAD returns the headers alone", async () => {
  const { ask } = await openTestServer({ start: false });
  const { status, headers, body } = await ask("/tasks/events", { method: "HEAD" });
  expect([status, headers.get("content-type"), body]).toEqual([200, "text/event-stream; charset=utf-8", ""]);
});
