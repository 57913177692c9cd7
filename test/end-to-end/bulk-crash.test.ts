import { join } from "node:path";
import { expect, test } from "vitest";
import { eventually, newFolder, startServer } from "./server-process.ts";

const TASKS = 3_000;

test("an action on many tasks goes on after kill -9, and acts on each once", {
  timeout: 120_000,
}, async () => {
  const storage = `sqlite:${join(newFolder(), "rota.db")}`;
  const environment = {
    ROTA_SCHEDULER_MAX_PER_AGENT: "10000",
    ROTA_SCHEDULER_MAX_QUEUE_SIZE: "10000",
  };
  const first = await startServer({ storage, environment });
  const runAt = new Date(Date.now() + 3_600_000).toISOString();
  for (let sent = 0; sent < TASKS; sent += 100) {
    const tasks = Array.from({ length: 100 }, (_, index) => ({ payload: sent + index, runAt }));
    expect((await first.ask("/tasks/batch", { json: { agentId: "a", tasks } })).status).toBe(202);
  }
  const json = { action: "cancel", filter: { agentId: "a" } };
  const { status, body } = await first.ask("/v1/tasks/bulk", { json });
  expect([status, body.matched]).toEqual([202, TASKS]);
  // It has begun, if at all, and is not done.
  first.kill("SIGKILL");
  expect(await first.ended).toEqual({ code: null, signal: "SIGKILL" });

  const second = await startServer({ storage, environment });
  await eventually(
    async () => (await second.ask(`/v1/bulk/${body.bulkId}`)).body.state === "done",
    "the bulk action to end",
  );
  expect((await second.ask(`/v1/bulk/${body.bulkId}`)).body).toMatchObject({
    matched: TASKS,
    done: TASKS,
    skipped: 0,
    failed: 0,
  });
  expect((await second.ask("/tasks/stats")).body.counts).toEqual({ cancelled: TASKS });
  second.kill("SIGTERM");
  await second.ended;
});
