import type { LaneRecord, QueueDepth } from "../storage/storage.ts";
import type { AgentLabels } from "./agent-labels.ts";
import type { Metric } from "./text-format.ts";

export interface QueueLook {
  readonly lanes: readonly LaneRecord[];
  readonly depth: QueueDepth;
  readonly labels: AgentLabels;
  /** The waiting tasks of the tenant, by reason code. */
  readonly waiting: ReadonlyMap<string, number>;
  /** For how long the tenant's most overdue schedule has been due; 0: none is due. */
  readonly scheduleLagMs: number;
  /** The age of the oldest event that is not in the rollups yet; 0: none. */
  readonly rollupLagMs: number;
}

/** The queue in the storage, over all nodes: every node returns the same. */
export function queueMetrics({
  lanes,
  depth,
  labels,
  waiting,
  scheduleLagMs,
  rollupLagMs,
}: QueueLook): Metric[] {
  return [
    {
      name: "rota_lane_waiting_tasks",
      help: "Tasks that wait in a lane, over all nodes, delayed ones included.",
      type: "gauge",
      series: lanes.map(({ name, waiting }) => ({ labels: { lane: name }, value: waiting })),
    },
    {
      name: "rota_lane_inflight_tasks",
      help: "Tasks that run in a lane, over all nodes.",
      type: "gauge",
      series: lanes.map(({ name, inflight }) => ({ labels: { lane: name }, value: inflight })),
    },
    {
      name: "rota_agent_queued_tasks",
      help: "Tasks of an agent that could start, over all nodes.",
      type: "gauge",
      series: [...byLabel(depth, labels)].map(([agent, value]) => ({ labels: { agent }, value })),
    },
    {
      name: "rota_waiting_tasks",
      help: "Waiting tasks over all nodes, by the first reason that holds each, as this node sees it.",
      type: "gauge",
      series: [...waiting].map(([reason, value]) => ({ labels: { reason }, value })),
    },
    {
      name: "rota_schedule_lag_seconds",
      help: "How long the schedule that is due for longest has waited to fire, over all nodes; 0: none is due.",
      type: "gauge",
      series: [{ labels: {}, value: scheduleLagMs / 1_000 }],
    },
    {
      name: "rota_rollup_lag_seconds",
      help: "Age of the oldest event that is not in the statistics over time yet, over all nodes; 0: all are.",
      type: "gauge",
      series: [{ labels: {}, value: rollupLagMs / 1_000 }],
    },
  ];
}

function byLabel({ ready }: QueueDepth, labels: AgentLabels): Map<string, number> {
  const sums = new Map<string, number>();
  for (const [agent, queued] of Object.entries(ready)) {
    const label = labels.of(agent);
    sums.set(label, (sums.get(label) ?? 0) + queued);
  }
  return sums;
}
