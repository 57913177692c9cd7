import { within } from "../../clock/within.ts";
import type { Engine } from "../../engine/engine.ts";
import type { WaitingReason, WaitingReasons } from "../../interface/waiting.ts";
import { processMetrics } from "../../metrics/process-metrics.ts";
import { queueMetrics } from "../../metrics/queue-metrics.ts";
import type { RequestMetrics } from "../../metrics/request-metrics.ts";
import { taskMetrics } from "../../metrics/task-series.ts";
import { type Metric, toText } from "../../metrics/text-format.ts";
import { tokenMetrics } from "../../metrics/token-metrics.ts";
import type { WebhookMetrics } from "../../metrics/webhook-metrics.ts";
import { workerMetrics } from "../../metrics/worker-metrics.ts";
import type { Clock } from "../../model/clock.ts";
import type { Storage, WorkerCount } from "../../storage/storage.ts";
import { VERSION } from "../../version.ts";

/** A storage that takes longer than this counts as unavailable: Prometheus gives up after ten seconds. */
const STORAGE_MS = 2_000;

export interface CollectMetricsParams {
  readonly tenant: string;
  readonly storage: Storage;
  readonly engine: Engine;
  readonly webhookMetrics: WebhookMetrics;
  /** Why the work of the tenant waits. */
  readonly waiting: () => Promise<WaitingReasons>;
  readonly requestMetrics: RequestMetrics;
  readonly clock: Clock;
}

/**
 * The text that Prometheus reads: what this process did for one tenant, by agent, and the state of the process and the lanes,
 * which tenants share. If the storage is unavailable, only its own metrics are missing. That is when operators look, and the
 * counters of this process show when it began.
 */
export async function collectMetrics(params: CollectMetricsParams): Promise<string> {
  const { tenant, engine, webhookMetrics, requestMetrics } = params;
  const own = engine.metrics.shownTo(tenant);
  const queue = await lookAtQueue(params).catch(() => null);
  return toText([
    gauge("rota_build_info", "Always 1: the version of Rota and of Node.", 1, {
      version: VERSION,
      node_version: process.version,
    }),
    gauge("rota_storage_up", "Whether the storage works: 1 yes, 0 no.", queue === null ? 0 : 1),
    gauge("rota_running_tasks", "Tasks that run in this process.", engine.running),
    gauge("rota_running_bytes", "Memory of the tasks that run in this process.", engine.memory.held),
    gauge(
      "rota_running_bytes_max",
      "Limit on that memory: at the limit the process starts no further task. 0: no limit.",
      engine.memory.max,
    ),
    ...(queue ?? []),
    ...taskMetrics(own.series()),
    ...tokenMetrics(own.tokens()),
    ...engine.runMetrics.metrics(),
    ...webhookMetrics.metrics(),
    ...requestMetrics.metrics(tenant),
    ...processMetrics(),
  ]);
}

async function lookAtQueue(params: CollectMetricsParams): Promise<Metric[]> {
  const { tenant, storage, engine, waiting, clock } = params;
  const work = Promise.all([
    storage.lanes.list(),
    storage.tasks.queueDepth({ tenant }),
    storage.schedules.nextDueAt({ tenant }),
    storage.now(),
    waiting(),
    storage.rollups.lateMs(),
    storage.workers.count({ tenant }),
  ]);
  const onLate = () => {
    throw new Error("the storage does not respond");
  };
  const [lanes, depth, dueAt, now, { reasons }, rollupLagMs, workers] = await within({
    clock,
    ms: STORAGE_MS,
    work,
    onLate,
  });
  const scheduleLagMs = Math.max(now - (dueAt ?? now), 0);
  const { labels } = engine.metrics.shownTo(tenant);
  const queue = queueMetrics({
    lanes,
    depth,
    labels,
    waiting: countByCode(reasons),
    scheduleLagMs,
    rollupLagMs,
  });
  return [...queue, ...metricsOfWorkers(workers, { engine, tenant })];
}

function metricsOfWorkers(
  counts: readonly WorkerCount[],
  { engine, tenant }: { engine: Engine; tenant: string },
): Metric[] {
  const live = counts.filter(({ state }) => state !== "lost");
  const { dispatcher, watch } = engine.workers;
  return workerMetrics({
    states: new Map(counts.map(({ state, count }) => [state, count])),
    slots: live.reduce((sum, { slots }) => sum + slots, 0),
    running: counts.reduce((sum, { held }) => sum + held, 0),
    waitingClaims: dispatcher.polls.sizeOf(tenant),
    lost: watch.lostOf(tenant),
  });
}

function countByCode(reasons: readonly WaitingReason[]): Map<string, number> {
  const byCode = Map.groupBy(reasons, ({ code }) => code);
  return new Map([...byCode].map(([code, own]) => [code, own.reduce((sum, { count }) => sum + count, 0)]));
}

function gauge(name: string, help: string, value: number, labels: Record<string, string> = {}): Metric {
  return { name, help, type: "gauge", series: [{ labels, value }] };
}
