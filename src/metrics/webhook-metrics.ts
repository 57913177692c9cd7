import { Histogram } from "./histogram.ts";
import type { Metric } from "./text-format.ts";

/** What became of one try to deliver a callback: delivered, to be tried again, or given up. */
export const TRY_OUTCOMES = ["delivered", "retried", "failed"] as const;
export type TryOutcome = (typeof TRY_OUTCOMES)[number];

/** The tries of this process to deliver callbacks. */
export class WebhookMetrics {
  readonly #tries: Record<TryOutcome, number> = { delivered: 0, retried: 0, failed: 0 };
  readonly #durations = new Histogram();

  tried({ outcome, ms }: { readonly outcome: TryOutcome; readonly ms: number }): void {
    this.#tries[outcome] += 1;
    this.#durations.observe(ms);
  }

  metrics(): Metric[] {
    return [
      {
        name: "rota_webhook_deliveries_total",
        help: "Tries of this process to deliver a callback, by what became of them.",
        type: "counter",
        series: TRY_OUTCOMES.map((outcome) => ({ labels: { outcome }, value: this.#tries[outcome] })),
      },
      {
        name: "rota_webhook_delivery_seconds",
        help: "How long these tries took.",
        type: "histogram",
        series: [{ labels: {}, value: this.#durations }],
      },
    ];
  }
}
