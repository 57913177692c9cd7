import { expect, test } from "vitest";
import { openTestRota } from "../../test/support/rota.ts";
import { settle } from "../testing/manual-clock.ts";
import { Latch } from "../testing/signals.ts";

async function makeWaiting() {
  const latch = new Latch<unknown>();
  const made = await openTestRota();
  made.rota.agent("a", () => latch.opened);
  await made.rota.start();
  const { taskId } = await made.rota.tasks.submit({ agentId: "a", payload: 1 });
  return { ...made, latch, taskId };
}

test("resolves with the task once it has ended", async () => {
  const { rota, latch, taskId } = await makeWaiting();
  const waiting = rota.tasks.wait(taskId);
  await settle();
  latch.open("result");
  expect(await waiting).toMatchObject({ taskId, state: "done", result: "result" });
});

test("resolves at once for a task that has ended", async () => {
  const { rota, latch, taskId } = await makeWaiting();
  latch.open(null);
  await settle();
  expect(await rota.tasks.wait(taskId)).toMatchObject({ state: "done" });
});

test("resolves for every waiting caller, however the task ended", async () => {
  const { rota, taskId } = await makeWaiting();
  const waiting = [rota.tasks.wait(taskId), rota.tasks.wait(taskId)];
  await settle();
  await rota.tasks.cancel(taskId);
  expect(await Promise.all(waiting)).toMatchObject([{ state: "cancelled" }, { state: "cancelled" }]);
});

test("throws `not_found` for a task that is not there", async () => {
  const { rota } = await makeWaiting();
  await expect(rota.tasks.wait("tsk_none")).rejects.toMatchObject({ code: "not_found" });
});

test("gives up with its signal or after its time, and leaves nothing behind", async () => {
  const { rota, clock, taskId } = await makeWaiting();
  const stop = new AbortController();
  const aborted = expect(rota.tasks.wait(taskId, { signal: stop.signal })).rejects.toBe("enough");
  const late = expect(rota.tasks.wait(taskId, { timeoutMs: 3_000 })).rejects.toMatchObject({
    name: "TimeoutError",
  });
  await settle();
  stop.abort("enough");
  await aborted;
  await clock.advance(3_000);
  await late;
  await expect(rota.tasks.wait(taskId, { signal: AbortSignal.abort("before") })).rejects.toBe("before");
});

test.each([Number.NaN, 0, -1, "5", null])("refuses to wait %s milliseconds", async (timeoutMs) => {
  const { rota, taskId } = await makeWaiting();
  await expect(rota.tasks.wait(taskId, { timeoutMs: timeoutMs as never })).rejects.toMatchObject({
    code: "invalid_field",
    details: { field: "timeoutMs" },
  });
});

test("ends with an error when the node stops first", async () => {
  const { rota, latch } = await makeWaiting();
  const { taskId } = await rota.tasks.submit({ agentId: "a", payload: 1, runAt: new Date("2100-01-01") });
  const waiting = expect(rota.tasks.wait(taskId)).rejects.toMatchObject({ code: "draining" });
  await settle();
  latch.open(null);
  await rota.stop();
  await waiting;
});
