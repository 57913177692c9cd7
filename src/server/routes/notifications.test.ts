import { join } from "node:path";
import { expect, test } from "vitest";
import { newFolder } from "../../../test/end-to-end/server-process.ts";
import { type Frame, type OpenStream, openStream } from "../../../test/support/event-stream.ts";
import { openTestServer, type TestServer } from "../../../test/support/http.ts";
import { openKeyedServer } from "../../../test/support/keyed-server.ts";
import { claimOne, registerWorker, submitTask } from "../../../test/support/workers.ts";
import { gap } from "../../api/events.ts";
import { notification } from "../../api/notifications.ts";
import { openSqlite } from "../../storage/sqlite/connection/open.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { Latch, until } from "../../testing/signals.ts";

const PATH = "/v1/notifications/stream";

/** Creates a schedule that is due every minute. Returns its id. */
async function schedule({ ask }: Pick<TestServer, "ask">, fields: object = {}): Promise<number> {
  const json = { schedule: "every minute", message: "look", ...fields };
  return (await ask("/v1/schedules", { json })).body.scheduled_task.id;
}

/** A stream from which the opening has been read. */
async function opened(url: string, headers: Record<string, string> = {}): Promise<OpenStream> {
  const stream = await openStream(url + PATH, headers);
  expect(await stream.next()).toMatchObject({ event: "open", data: { ok: true } });
  return stream;
}

/** What comes next, signs of life apart. */
async function take(stream: OpenStream, count: number): Promise<Frame[]> {
  const frames: Frame[] = [];
  while (frames.length < count) {
    const [frame] = await stream.take(1);
    if (frame !== undefined && frame.comment === undefined) frames.push(frame);
  }
  return frames;
}

/** Whether the stream has ended, signs of life apart. */
async function hasEnded(stream: OpenStream): Promise<boolean> {
  for (;;) {
    const frame = await stream.next();
    if (frame?.comment === undefined) return frame === undefined;
  }
}

test("says at once that it is open, and then what schedules and runs do", async () => {
  const server = await openTestServer();
  const { url, clock, ask } = server;
  const stream = await openStream(url + PATH);
  expect([
    stream.status,
    ...["content-type", "cache-control", "x-accel-buffering"].map((name) => stream.headers.get(name)),
  ]).toEqual([200, "text/event-stream; charset=utf-8", "no-store", "no"]);
  expect(await stream.next()).toEqual({ retry: "1000", id: "0", event: "open", data: { ok: true } });
  const task_id = await schedule(server);
  await clock.advance(60_000);
  await ask(`/v1/schedules/${task_id}`, { method: "PATCH", json: { status: "paused" } });
  await ask(`/v1/schedules/${task_id}`, { method: "DELETE" });
  const frames = await take(stream, 4);
  expect(frames.map(({ id, event, data }) => [id, event, data.kind])).toEqual([
    ["1", "notification", "run.started"],
    ["2", "notification", "run.completed"],
    ["3", "notification", "schedule.paused"],
    ["4", "notification", "schedule.canceled"],
  ]);
  for (const { data } of frames) {
    expect(notification.parse(data)).toMatchObject({ task_id, agent_id: "index" });
  }
  expect(frames[1]?.data).toMatchObject({ status: "succeeded", result_summary: "look", run_id: 1 });
});

test("reports workers that register, are lost with their attempts, and come back", async () => {
  const { url, ask, clock } = await openTestServer();
  const live = await opened(url);
  const instanceId = "8a0b7e0e-3c2d-4a54-9a2a-6f2e1f0c9b7d";
  const worker_id = await registerWorker(ask, { instanceId });
  await registerWorker(ask, { instanceId });
  await submitTask(ask);
  await claimOne(ask, worker_id);
  // It gives no sign of life for more than its lease.
  for (let seconds = 0; seconds < 25; seconds += 5) await clock.advance(5_000);
  await registerWorker(ask, { instanceId });
  await ask(`/v1/workers/${worker_id}`, { method: "DELETE" });
  const next = await registerWorker(ask, { instanceId });
  const worker = { worker_id, name: "w", agents: ["py"], slots: 2, timestamp: expect.any(Number) };
  const frames = await take(live, 4);
  expect(frames.map(({ id, data }) => [id, data])).toEqual([
    ["1", { kind: "worker.registered", ...worker }],
    ["2", { kind: "worker.lost", ...worker, attempts: 1, reason: "no sign of life for 15000 ms" }],
    ["3", { kind: "worker.registered", ...worker, reason: "it was lost" }],
    ["4", { kind: "worker.registered", ...worker, worker_id: next }],
  ]);
  for (const { data } of frames) expect(notification.parse(data)).toEqual(data);
  const again = await opened(url, { "Last-Event-ID": "1" });
  expect(await take(again, 3)).toEqual(frames.slice(1));
});

test("reports workers to keys of their tenant, but not to keys of an agent or of the role worker", async () => {
  const { url, key, askWith, rota } = await openKeyedServer();
  const { id: tenantId } = await rota.tenants.create({ name: "acme" });
  const [own, other] = [await key({}), await key({ tenantId })];
  const headersOf = (secret: string) => ({ authorization: `Bearer ${secret}` });
  const ofAgent = headersOf(await key({ role: "agent", agentId: "py" }));
  const [liveOfAgent, liveOfOther] = [await opened(url, ofAgent), await opened(url, headersOf(other))];
  const worker = await registerWorker((path, init) => askWith(own, path, init));
  const foreign = await registerWorker((path, init) => askWith(other, path, init));
  const { scheduled_task } = await rota.schedules.create({
    agent: "py",
    schedule: "every 1 h",
    message: "look",
  });
  await rota.schedules.update(scheduled_task.id, { status: "paused" });

  const first = async (stream: OpenStream) => {
    const [frame] = await take(stream, 1);
    return frame?.data.worker_id ?? frame?.data.kind;
  };
  const replay = (headers: Record<string, string>) => opened(url, { ...headers, "Last-Event-ID": "0" });
  expect(await first(await replay(headersOf(own)))).toBe(worker);
  for (const stream of [liveOfAgent, await replay(ofAgent)])
    expect(await first(stream)).toBe("schedule.paused");
  for (const stream of [liveOfOther, await replay(headersOf(other))])
    expect(await first(stream)).toBe(foreign);
  const ofWorker = await askWith(await key({ role: "worker", agents: ["py"] }), PATH);
  expect([ofWorker.status, ofWorker.body.code]).toEqual([403, "forbidden"]);
});

test("is the same for all readers, and goes on for each after its last entry", async () => {
  const server = await openTestServer();
  const { url, clock } = server;
  await schedule(server);
  const [first, second] = [await opened(url), await opened(url)];
  await clock.advance(60_000);
  const seen = await take(first, 1);
  expect(await take(second, 2)).toEqual([seen[0], expect.objectContaining({ id: "2" })]);
  first.close();
  await clock.advance(60_000);
  const again = await opened(url, { "Last-Event-ID": seen[0]?.id as string });
  await clock.advance(60_000);
  expect((await take(again, 5)).map(({ id }) => id)).toEqual(["2", "3", "4", "5", "6"]);
  expect((await take(second, 4)).map(({ id }) => id)).toEqual(["3", "4", "5", "6"]);
});

test("says with its opening from where it goes on, for a reader that loses it before the first entry", async () => {
  const server = await openTestServer();
  const { url, clock } = server;
  await schedule(server);
  await clock.advance(60_000);
  const stream = await openStream(url + PATH);
  const { id } = (await stream.next()) ?? {};
  expect(id).toBe("2");
  stream.close();
  await clock.advance(60_000);
  const again = await opened(url, { "Last-Event-ID": id as string });
  expect((await take(again, 2)).map((frame) => frame.id)).toEqual(["3", "4"]);
});

test.each([
  ["the header, 0 for all", PATH, { "Last-Event-ID": "0" }, "1"],
  ["the query", `${PATH}?lastEventId=1`, {}, "2"],
  ["the header rather than the query", `${PATH}?lastEventId=0`, { "Last-Event-ID": "2" }, "3"],
])("begins where %s says", async (_what, path, headers, firstId) => {
  const server = await openTestServer();
  await schedule(server);
  for (let minutes = 0; minutes < 2; minutes++) await server.clock.advance(60_000);
  const stream = await openStream(server.url + path, headers as Record<string, string>);
  expect((await take(stream, 2)).at(1)?.id).toBe(firstId);
});

test("goes on after a restart of the server, on what it has on disk", async () => {
  const path = join(newFolder(), "rota.db");
  const clock = new ManualClock();
  const first = await openTestServer({ clock, storage: await openSqlite({ path, clock }) });
  await schedule(first);
  const stream = await opened(first.url);
  await clock.advance(60_000);
  const [, last] = await take(stream, 2);
  await first.rota.stop();
  expect(await hasEnded(stream)).toBe(true);

  await clock.advance(90_000);
  const second = await openTestServer({ clock, storage: await openSqlite({ path, clock }) });
  const again = await opened(second.url, { "Last-Event-ID": last?.id as string });
  const frames = await take(again, 2);
  expect(frames.map(({ id, data }) => [id, data.kind, data.run_id])).toEqual([
    ["3", "run.started", 2],
    ["4", "run.completed", 2],
  ]);
});

test("says after the opening that some are missing which would have come", async () => {
  const server = await openTestServer();
  const { url, clock, storage } = server;
  await schedule(server);
  for (let minutes = 0; minutes < 3; minutes++) await clock.advance(60_000);
  await storage.schedules.prune({ retentionMs: 30_000, limit: 100 });
  const { oldest } = await storage.notifications.range();
  expect(oldest).toBeGreaterThan(2);
  const stream = await opened(url, { "Last-Event-ID": "1" });
  const [missing, next] = await take(stream, 2);
  expect([missing?.event, gap.parse(missing?.data)]).toEqual(["gap", { after: 1, oldest }]);
  expect(missing?.id).toBeUndefined();
  expect(next?.id).toBe(String(oldest));
});

test("gives a sign of life every 30 seconds", async () => {
  const { url, clock } = await openTestServer({ start: false });
  const stream = await opened(url);
  await clock.advance(30_000);
  expect(await stream.next()).toEqual({ comment: "heartbeat" });
  await clock.advance(60_000);
  expect(await stream.take(2)).toEqual(Array(2).fill({ comment: "heartbeat" }));
});

test("goes on while the node drains, reports how its runs end, and ends when it stops", async () => {
  const server = await openTestServer();
  const { url, rota, clock } = server;
  const latch = new Latch();
  rota.agent("slow", () => latch.opened);
  await schedule(server, { agent: "slow" });
  const stream = await opened(url);
  await clock.advance(60_000);
  await take(stream, 1);
  const drained = rota.drain();
  await until(() => rota.state === "draining");
  const late = await opened(url);
  latch.open();
  await drained;
  for (const each of [stream, late]) expect((await take(each, 1))[0]?.data.kind).toBe("run.completed");
  await rota.stop();
  for (const each of [stream, late]) expect(await hasEnded(each)).toBe(true);
});

test.each(["x", "-1", "1.5", "99999999999999999"])("refuses the Last-Event-ID %s, by name", async (id) => {
  const { ask } = await openTestServer({ start: false });
  for (const answer of [
    await ask(PATH, { headers: { "Last-Event-ID": id } }),
    await ask(`${PATH}?lastEventId=${encodeURIComponent(id)}`),
  ]) {
    expect([answer.status, answer.body.details]).toEqual([400, { field: "Last-Event-ID" }]);
  }
});

test("takes no other parameter, and is nowhere but under /v1", async () => {
  const { ask } = await openTestServer({ start: false });
  expect((await ask(`${PATH}?agentId=a`)).status).toBe(400);
  expect((await ask("/notifications/stream")).status).toBe(404);
  expect((await ask(PATH, { json: {} })).status).toBe(405);
});

test("HEAD returns the headers alone", async () => {
  const { ask } = await openTestServer({ start: false });
  const { status, headers, body } = await ask(PATH, { method: "HEAD" });
  expect([status, headers.get("content-type"), body]).toEqual([200, "text/event-stream; charset=utf-8", ""]);
});
