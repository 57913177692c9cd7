import { randomUUID } from "node:crypto";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openSqlite } from "../../src/storage/sqlite/connection/open.ts";
import { ManualClock } from "../../src/testing/manual-clock.ts";
import { openTestServer } from "../support/http.ts";
import { claimOne, claimTasks, registerWorker, submitTask } from "../support/workers.ts";

test("a restart of Rota leaves the attempts of workers alone", async () => {
  const file = join(mkdtempSync(join(tmpdir(), "workers-")), "rota.db");
  const clock = new ManualClock();
  const first = await openTestServer({ clock, storage: await openSqlite({ path: file, clock }) });
  const worker = await registerWorker(first.ask);
  const [ends, times] = [await submitTask(first.ask), await submitTask(first.ask, { timeout: 20_000 })];
  const { attempts } = await claimTasks(first.ask, worker);
  const tokens = attempts.map(({ attemptToken }) => ({ attemptToken }));
  await first.ask(`/v1/workers/${worker}/heartbeat`, { json: { attempts: tokens } });
  await first.rota.stop({ graceMs: 0 });
  await first.close();

  const second = await openTestServer({ clock, storage: await openSqlite({ path: file, clock }) });
  const { ask } = second;
  for (const id of [ends, times])
    expect((await ask(`/tasks/${id}`)).body).toMatchObject({ state: "running" });
  const beat = await ask(`/v1/workers/${worker}/heartbeat`, { json: { attempts: tokens } });
  expect(beat.body.attempts).toMatchObject([{ ok: true }, { ok: true }]);
  const attemptToken = attempts.find(({ task }) => task.taskId === ends)?.attemptToken;
  const finish = await ask(`/v1/workers/${worker}/finish`, {
    json: { attempts: [{ attemptToken, outcome: "done", result: 1 }] },
  });
  expect(finish.body.attempts).toEqual([{ attemptToken, recorded: true }]);
  // The next node keeps timeouts of attempts that another one assigned.
  for (let second = 0; second < 21; second += 1) {
    if (second % 5 === 0) await ask(`/v1/workers/${worker}/heartbeat`, { json: { attempts: tokens } });
    await clock.advance(1_000);
  }
  expect((await ask(`/tasks/${times}`)).body).toMatchObject({
    state: "failed",
    error: "timed out after 20000 ms",
  });
  await submitTask(ask);
  await claimOne(ask, worker);
});

test("a server with a disabled scheduler assigns nothing, and takes what workers report", async () => {
  const file = join(mkdtempSync(join(tmpdir(), "workers-")), "rota.db");
  const clock = new ManualClock();
  const first = await openTestServer({ clock, storage: await openSqlite({ path: file, clock }) });
  const worker = await registerWorker(first.ask);
  const [ends, times] = [await submitTask(first.ask), await submitTask(first.ask, { timeout: 20_000 })];
  const { attempts } = await claimTasks(first.ask, worker);
  await first.rota.stop({ graceMs: 0 });
  await first.close();

  const storage = await openSqlite({ path: file, clock });
  const options = { scheduler: { enabled: false } };
  const { ask, rota } = await openTestServer({ clock, storage, options });
  expect(
    (await ask(`/v1/workers/${worker}/claim`, { json: { claimId: randomUUID(), max: 1 } })).body,
  ).toEqual(expect.objectContaining({ code: "scheduler_disabled" }));
  const tokenOf = (id: string) => attempts.find(({ task }) => task.taskId === id)?.attemptToken;
  const report = { progress: { percent: 50 }, log: [{ text: "half way" }] };
  const beat = await ask(`/v1/workers/${worker}/heartbeat`, {
    json: { attempts: [{ attemptToken: tokenOf(ends), ...report }, { attemptToken: tokenOf(times) }] },
  });
  expect(beat.body.attempts).toMatchObject([{ ok: true }, { ok: true }]);
  const finish = await ask(`/v1/workers/${worker}/finish`, {
    json: { attempts: [{ attemptToken: tokenOf(ends), outcome: "done", result: 1 }] },
  });
  expect(finish.body.attempts).toEqual([{ attemptToken: tokenOf(ends), recorded: true }]);
  expect((await ask(`/tasks/${ends}`)).body).toMatchObject({ state: "done", result: 1 });
  for (let second = 0; second < 21; second += 1) {
    if (second % 5 === 0)
      await ask(`/v1/workers/${worker}/heartbeat`, {
        json: { attempts: [{ attemptToken: tokenOf(times) }] },
      });
    await clock.advance(1_000);
  }
  expect((await ask(`/tasks/${times}`)).body).toMatchObject({ error: "timed out after 20000 ms" });
  expect((await ask(`/tasks/${ends}/logs`)).body.lines).toMatchObject([{ text: "half way" }]);
  await rota.stop({ graceMs: 0 });
});
