import { expect, test } from "vitest";
import { MetricsByTenant } from "./metrics-by-tenant.ts";

const LANE = "tasks";

function submit(metrics: MetricsByTenant, tenant: string, agent: string): void {
  metrics.of(tenant).submitted({ agent, lane: LANE }, { rejected: false });
}

test("counts for each tenant by itself, and shows it nothing else", () => {
  const metrics = new MetricsByTenant();
  submit(metrics, "acme", "a");
  submit(metrics, "default", "b");
  expect(metrics.shownTo("acme").snapshot()).toMatchObject({ tasksSubmitted: 1, agents: { a: {} } });
  expect(
    metrics
      .shownTo("default")
      .series()
      .map(({ labels }) => labels["agent"]),
  ).toEqual(["b"]);
  expect(metrics.shownTo("unknown").snapshot()).toMatchObject({ tasksSubmitted: 0, agents: {} });
});

test("counts what expired and what was lost for whom it belongs to", () => {
  const metrics = new MetricsByTenant();
  const [ours, theirs] = ["default", "acme"].map((tenant) => ({ tenant, agent: `of-${tenant}`, lane: LANE }));
  if (ours === undefined || theirs === undefined) throw new Error("There are two.");
  metrics.expired([ours, theirs, theirs]);
  metrics.lost({ failed: [theirs], requeued: [ours, theirs] });
  expect(metrics.shownTo("default").snapshot()).toMatchObject({ tasksExpired: 1, tasksFailed: 1 });
  expect(metrics.shownTo("acme").snapshot()).toMatchObject({ tasksExpired: 2, tasksFailed: 3 });
  for (const tenant of ["default", "acme"]) {
    const { agents } = metrics.shownTo(tenant).snapshot();
    expect(Object.keys(agents)).toEqual([`of-${tenant}`]);
    expect(metrics.shownTo(tenant).series()).toMatchObject([{ series: { retried: 1 } }]);
  }
});

test("keeps a bounded number of tenants, and shows one beyond them nothing of others", () => {
  const metrics = new MetricsByTenant();
  for (let i = 0; i < 1_500; i++) submit(metrics, `tenant-${i}`, "a");
  expect(metrics.shownTo("tenant-999").snapshot().tasksSubmitted).toBe(1);
  expect(metrics.shownTo("tenant-1200").snapshot().tasksSubmitted).toBe(0);
  submit(metrics, "default", "mine");
  expect(metrics.shownTo("default").snapshot().tasksSubmitted).toBe(1);
});

test("keeps a bounded number of agents over all tenants, and has room again when one is gone", () => {
  const metrics = new MetricsByTenant();
  for (let tenant = 0; tenant < 20; tenant++) {
    for (let agent = 0; agent < 900; agent++) submit(metrics, `tenant-${tenant}`, `agent-${agent}`);
  }
  const rows = (tenant: string) => Object.keys(metrics.shownTo(tenant).snapshot().agents);
  const all = Array.from({ length: 20 }, (_, tenant) => rows(`tenant-${tenant}`));
  expect(all.flat().filter((agent) => agent !== "other")).toHaveLength(10_000);
  expect(rows("tenant-19")).toEqual(["other"]);
  metrics.forget("tenant-0");
  expect(rows("tenant-0")).toEqual([]);
  submit(metrics, "tenant-19", "late");
  expect(rows("tenant-19")).toEqual(["other", "late"]);
});
