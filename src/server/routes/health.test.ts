import { expect, test } from "vitest";
import { openTestServer } from "../../../test/support/http.ts";
import { away } from "../../../test/support/storages.ts";
import { health, ready } from "../../api/health.ts";
import { Latch, until } from "../../testing/signals.ts";

test.each(["", "/v1"])("%s/health and %s/ready respond with 200 while it runs", async (prefix) => {
  const { ask } = await openTestServer();
  const living = await ask(`${prefix}/health`);
  expect([living.status, health.parse(living.body)]).toMatchObject([
    200,
    { state: "running", storage: "ok" },
  ]);
  const accepting = await ask(`${prefix}/ready`);
  expect([accepting.status, ready.parse(accepting.body)]).toEqual([200, { status: "ready" }]);
});

test("while it drains it lives, is not ready, takes nothing new and shows what it has", async () => {
  const { ask, rota } = await openTestServer();
  const latch = new Latch();
  const started = new Latch();
  rota.agent("slow", () => {
    started.open();
    return latch.opened;
  });
  const { taskId } = (await ask("/tasks", { json: { agentId: "slow", payload: 1 } })).body;
  await started.opened;
  const drained = rota.drain();
  await until(() => rota.state === "draining");

  for (const [path, init] of [["/ready"], ["/tasks", { json: { payload: 2 } }]] as const) {
    const { status, headers, body } = await ask(path, init);
    expect([status, body.code, body.retryable, headers.get("retry-after")]).toEqual([
      503,
      "draining",
      true,
      "5",
    ]);
  }
  expect((await ask("/health")).body).toMatchObject({ status: "ok", state: "draining" });
  expect((await ask(`/tasks/${taskId}`)).body.state).toBe("running");
  latch.open();
  await drained;
  expect((await ask(`/tasks/${taskId}`)).body.state).toBe("done");
  expect((await ask("/health")).body.state).toBe("drained");
});

test("while its storage is away it lives and is not ready", async () => {
  let isAway = false;
  const { ask, clock } = await openTestServer({
    start: false,
    meddler: {
      before: () => {
        if (isAway) throw away();
      },
    },
  });
  isAway = true;
  expect((await ask("/health")).body).toMatchObject({ status: "ok", storage: "unavailable" });
  for (const path of ["/ready", "/tasks", "/tasks/tsk_1"]) {
    const { status, headers, body } = await ask(path);
    expect([status, body.code, body.retryable, headers.get("retry-after")]).toEqual([
      503,
      "storage_unavailable",
      true,
      "5",
    ]);
  }
  isAway = false;
  await clock.advance(1_000);
  expect((await ask("/ready")).status).toBe(200);
});

test("a storage that does not respond in time counts as unavailable", async () => {
  let hangs = false;
  const asked = new Latch();
  const { ask, clock } = await openTestServer({
    start: false,
    meddler: {
      before: () => {
        if (!hangs) return;
        asked.open();
        return new Promise(() => {});
      },
    },
  });
  hangs = true;
  const answer = ask("/ready");
  await asked.opened;
  await clock.advance(2_000);
  expect((await answer).body.code).toBe("storage_unavailable");
  hangs = false;
});
