import { expect, test } from "vitest";
import { openStream } from "../../../test/support/event-stream.ts";
import { openTestServer } from "../../../test/support/http.ts";
import { openKeyedServer } from "../../../test/support/keyed-server.ts";
import {
  claimTasks as claim,
  claimOne,
  claimsWait,
  registerWorker as register,
  submitTask as submit,
} from "../../../test/support/workers.ts";

const OPEN = { event: "open", retry: "1000", data: { ok: true } };

test("a stream reports to a worker at once that its attempts were cancelled, timed out or released", async () => {
  const { ask, url, clock } = await openTestServer();
  const worker = await register(ask, { slots: 3 });
  const stream = await openStream(`${url}/v1/workers/${worker}/signals`);
  expect(await stream.next()).toEqual(OPEN);
  const cancelled = await submit(ask);
  await claimOne(ask, worker);
  await ask(`/tasks/${cancelled}/cancel`, { method: "POST" });
  expect(await stream.next()).toEqual({
    event: "cancel",
    data: { taskId: cancelled, number: 1, cancel: "cancelled" },
  });
  const slow = await submit(ask, { timeout: 2_000 });
  await claimOne(ask, worker);
  await clock.advance(2_001);
  expect(await stream.next()).toEqual({
    event: "cancel",
    data: { taskId: slow, number: 1, cancel: "timeout" },
  });
  const held = await submit(ask);
  await claimOne(ask, worker);
  await ask(`/v1/workers/${worker}`, { method: "DELETE" });
  expect(await stream.next()).toEqual({
    event: "cancel",
    data: { taskId: held, number: 1, cancel: "released" },
  });
  expect(await stream.next()).toBeUndefined();
});

test("a drain ends the claim that waits, and is on the stream, also on one that is opened later", async () => {
  const { ask, url } = await openTestServer();
  const worker = await register(ask);
  const stream = await openStream(`${url}/v1/workers/${worker}/signals`);
  await stream.next();
  const waiting = claim(ask, worker, { waitS: 25 });
  await claimsWait(ask, 1);
  await ask(`/v1/workers/${worker}/drain`, { method: "POST" });
  expect(await waiting).toEqual({ attempts: [], drain: true });
  expect(await stream.next()).toEqual({ event: "drain", data: {} });
  const later = await openStream(`${url}/v1/workers/${worker}/signals`);
  expect(await later.take(2)).toEqual([OPEN, { event: "drain", data: {} }]);
});

test("a worker has one stream: another one ends the first", async () => {
  const { ask, url } = await openTestServer();
  const worker = await register(ask);
  const [first, second] = [
    await openStream(`${url}/v1/workers/${worker}/signals`),
    await openStream(`${url}/v1/workers/${worker}/signals`),
  ];
  expect(await first.take(1)).toEqual([OPEN]);
  expect(await first.next()).toBeUndefined();
  expect(await second.next()).toEqual(OPEN);
  const none = await ask("/v1/workers/wrk_none/signals");
  expect([none.status, none.body.code]).toEqual([404, "unknown_worker"]);
});

test("only the key that registered the worker may follow it, until another key does", async () => {
  const { url, key, askWith } = await openKeyedServer();
  const [own, other] = [
    await key({ role: "worker", agents: ["py"] }),
    await key({ role: "worker", agents: ["py"] }),
  ];
  const instanceId = crypto.randomUUID();
  const json = { name: "w", agents: ["py"], slots: 1, instanceId };
  const { workerId } = (await askWith(own, "/v1/workers", { json })).body;
  const path = `/v1/workers/${workerId}/signals`;
  expect((await askWith(other, path)).status).toBe(403);
  expect((await askWith(await key({ role: "viewer" }), path)).status).toBe(403);
  const stream = await openStream(url + path, { authorization: `Bearer ${own}` });
  expect(await stream.next()).toEqual(OPEN);
  await askWith(other, "/v1/workers", { json });
  expect(await stream.next()).toBeUndefined();
  const rotated = await openStream(url + path, { authorization: `Bearer ${other}` });
  expect(await rotated.next()).toEqual(OPEN);
});
