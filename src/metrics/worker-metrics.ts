import { WORKER_STATES, type WorkerState } from "../model/worker.ts";
import type { Metric } from "./text-format.ts";

export interface WorkerFigures {
  /** How many workers of the tenant are in each state. */
  readonly states: ReadonlyMap<WorkerState, number>;
  readonly slots: number;
  readonly running: number;
  /** Claims of the tenant that wait on this node. */
  readonly waitingClaims: number;
  /** Workers of the tenant that this node found lost. */
  readonly lost: number;
}

/** The workers of a tenant, and what this node does for workers. */
export function workerMetrics({ states, slots, running, waitingClaims, lost }: WorkerFigures): Metric[] {
  return [
    {
      name: "rota_workers",
      help: "Workers that pull tasks, by state.",
      type: "gauge",
      series: WORKER_STATES.map((state) => ({ labels: { state }, value: states.get(state) ?? 0 })),
    },
    gauge("rota_worker_slots", "Slots of the workers that are not lost.", slots),
    gauge("rota_worker_attempts", "Attempts that workers hold.", running),
    gauge(
      "rota_worker_claims_waiting",
      "Claims of the tenant's workers that wait on this node.",
      waitingClaims,
    ),
    {
      name: "rota_workers_lost_total",
      help: "Workers of the tenant that this node found lost.",
      type: "counter",
      series: [{ labels: {}, value: lost }],
    },
  ];
}

function gauge(name: string, help: string, value: number): Metric {
  return { name, help, type: "gauge", series: [{ labels: {}, value }] };
}
