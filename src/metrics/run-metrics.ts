import { Histogram } from "./histogram.ts";
import type { Metric } from "./text-format.ts";

/** Outcomes of due times: a run fired, a run failed to start, or there was none. */
export const FIRE_OUTCOMES = ["fired", "failed", "skipped", "missed"] as const;
export type FireOutcome = (typeof FIRE_OUTCOMES)[number];

/** The runs that this process recorded. */
export class RunMetrics {
  readonly #runs: Record<FireOutcome, number> = { fired: 0, failed: 0, skipped: 0, missed: 0 };
  readonly #lags = new Histogram();

  wrote(outcome: FireOutcome): void {
    this.#runs[outcome] += 1;
  }

  /** Observes how long after its due time a run was created. */
  lagged(ms: number): void {
    this.#lags.observe(Math.max(ms, 0));
  }

  metrics(): Metric[] {
    return [
      {
        name: "rota_runs_total",
        help: "Runs of schedules that this process recorded, by outcome.",
        type: "counter",
        series: FIRE_OUTCOMES.map((outcome) => ({ labels: { outcome }, value: this.#runs[outcome] })),
      },
      {
        name: "rota_run_lag_seconds",
        help: "From the due time of a run until the run is stored.",
        type: "histogram",
        series: [{ labels: {}, value: this.#lags }],
      },
    ];
  }
}
