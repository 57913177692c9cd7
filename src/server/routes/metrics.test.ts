import { expect, test } from "vitest";
import { openTestServer } from "../../../test/support/http.ts";
import { readMetrics } from "../../../test/support/prometheus.ts";
import { away } from "../../../test/support/storages.ts";
import { Latch, until } from "../../testing/signals.ts";
import { VERSION } from "../../version.ts";

test.each(["", "/v1"])("%s/metrics is the text format of Prometheus", async (prefix) => {
  const { ask } = await openTestServer();
  const { status, headers, body } = await ask(`${prefix}/metrics`);
  expect([status, headers.get("content-type")]).toEqual([200, "text/plain; version=0.0.4; charset=utf-8"]);
  const metrics = readMetrics(body);
  expect(metrics.get("rota_build_info")?.samples).toEqual(
    new Map([[`{version="${VERSION}",node_version="${process.version}"}`, 1]]),
  );
  expect(metrics.get("rota_storage_up")?.samples.get("")).toBe(1);
  expect(metrics.get("process_resident_memory_bytes")?.samples.get("")).toBeGreaterThan(1_000_000);
});

test("counts tasks by agent and lane, from their submission to their end", async () => {
  const { ask, rota, clock } = await openTestServer({ options: { scheduler: { maxPerAgent: 1 } } });
  const latch = new Latch();
  rota.agent("slow", () => latch.opened);
  const submit = async (json: object) => (await ask("/tasks", { json })).body.taskId as string;
  const look = async () => readMetrics((await ask("/metrics")).body);

  await submit({ agentId: "slow", payload: 1 });
  await submit({ agentId: "late", message: "x", runAt: "2100-01-01T00:00:00Z" });
  expect((await ask("/tasks", { json: { agentId: "late", message: "x" } })).status).toBe(429);
  await until(async () => (await look()).get("rota_running_tasks")?.samples.get("") === 1);
  const during = await look();
  const slow = '{agent="slow",lane="tasks"}';
  const late = '{agent="late",lane="main"}';
  expect(during.get("rota_tasks_submitted_total")?.samples.get(slow)).toBe(1);
  expect(during.get("rota_tasks_started_total")?.samples.get(slow)).toBe(1);
  expect(during.get("rota_tasks_submitted_total")?.samples.get(late)).toBe(1);
  expect(during.get("rota_tasks_rejected_total")?.samples.get(late)).toBe(1);
  expect(during.get("rota_lane_inflight_tasks")?.samples.get('{lane="tasks"}')).toBe(1);
  expect(during.get("rota_lane_waiting_tasks")?.samples.get('{lane="main"}')).toBe(1);

  await clock.advance(3_000);
  latch.open();
  await until(async () => (await look()).get("rota_tasks_completed_total")?.samples.get(slow) === 1);
  const run = (await look()).get("rota_task_run_seconds")?.samples;
  expect(run?.get('_bucket{agent="slow",lane="tasks",le="2.5"}')).toBe(0);
  expect(run?.get('_bucket{agent="slow",lane="tasks",le="5"}')).toBe(1);
  expect(run?.get(`_sum${slow}`)).toBe(3);
  expect((await look()).get("rota_task_wait_seconds")?.samples.get(`_count${slow}`)).toBe(1);
});

test("counts what expired, was cancelled or retried", async () => {
  const { ask, rota, clock } = await openTestServer();
  const latch = new Latch();
  rota.agent("busy", { maxInflight: 1 }, () => latch.opened);
  rota.agent("failing", () => {
    throw new Error("no");
  });
  const submit = async (json: object) => (await ask("/tasks", { json })).body.taskId as string;
  await submit({ agentId: "busy", payload: 1 });
  await submit({ agentId: "busy", payload: 2, deadline: new Date(clock.now() + 1_000).toISOString() });
  const cancelled = await submit({ agentId: "busy", payload: 3 });
  await ask(`/tasks/${cancelled}`, { method: "DELETE" });
  const failing = await submit({ agentId: "failing", payload: 1, retryPolicy: { maxRetries: 1 } });
  await clock.advance(2_000);
  await rota.tasks.wait(failing);
  const metrics = readMetrics((await ask("/metrics")).body);
  const values = (agent: string, ...names: string[]) =>
    names.map((name) =>
      metrics.get(`rota_tasks_${name}_total`)?.samples.get(`{agent="${agent}",lane="tasks"}`),
    );
  expect(values("busy", "expired", "failed", "cancelled")).toEqual([1, 1, 1]);
  expect(values("failing", "retried", "failed", "started")).toEqual([1, 1, 2]);
  latch.open();
});

test("names a hundred agents, those that came first, and adds up the rest", async () => {
  const { ask, rota } = await openTestServer({ start: false });
  await rota.tasks.submitMany(
    Array.from({ length: 150 }, (_, i) => ({
      agentId: `agent-${i}`,
      payload: i,
      lane: i % 2 ? "main" : "tasks",
    })),
  );
  const { body } = await ask("/metrics");
  const agents = new Set([...body.matchAll(/agent="([^"]*)"/g)].map(([, agent]) => agent));
  expect(agents).toEqual(new Set([...Array.from({ length: 100 }, (_, i) => `agent-${i}`), "other"]));
  const metrics = readMetrics(body);
  expect(metrics.get("rota_agent_queued_tasks")?.samples.get('{agent="other"}')).toBe(50);
  expect(metrics.get("rota_tasks_submitted_total")?.samples.get('{agent="other",lane="main"}')).toBe(25);
});

test("while the storage is away, or hangs, what this process knows is still shown", async () => {
  let how: "well" | "away" | "hangs" = "well";
  const asked = new Latch();
  const { ask, clock } = await openTestServer({
    start: false,
    meddler: {
      before: () => {
        if (how === "away") throw away();
        if (how === "well") return;
        asked.open();
        return new Promise(() => {});
      },
    },
  });
  await ask("/tasks", { json: { payload: 1 } });
  const look = async () => {
    const { status, body } = await ask("/metrics");
    expect(status).toBe(200);
    const metrics = readMetrics(body);
    return [
      metrics.get("rota_storage_up")?.samples.get(""),
      metrics.get("rota_tasks_submitted_total")?.samples.get('{agent="index",lane="tasks"}'),
      metrics.has("rota_lane_waiting_tasks"),
    ];
  };
  expect(await look()).toEqual([1, 1, true]);
  how = "away";
  expect(await look()).toEqual([0, 1, false]);
  how = "hangs";
  const late = look();
  await asked.opened;
  await clock.advance(2_000);
  expect(await late).toEqual([0, 1, false]);
  how = "well";
  expect(await look()).toEqual([1, 1, true]);
});
