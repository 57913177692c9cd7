import { Histogram } from "./histogram.ts";
import type { Metric } from "./text-format.ts";

/** Outcomes of one try of a webhook delivery: delivered, to be retried, or given up. */
export const TRY_OUTCOMES = ["delivered", "retried", "failed"] as const;
export type TryOutcome = (typeof TRY_OUTCOMES)[number];

/** Webhook deliveries in flight, by whether their host was reached before. */
export interface InFlightDeliveries {
  readonly proven: number;
  readonly unproven: number;
}

/** The tries of webhook deliveries by this process. */
export class WebhookMetrics {
  readonly #inFlight: () => InFlightDeliveries;
  readonly #tries: Record<TryOutcome, number> = { delivered: 0, retried: 0, failed: 0 };
  readonly #durations = new Histogram();

  constructor({ inFlight }: { readonly inFlight: () => InFlightDeliveries }) {
    this.#inFlight = inFlight;
  }

  tried({ outcome, ms }: { readonly outcome: TryOutcome; readonly ms: number }): void {
    this.#tries[outcome] += 1;
    this.#durations.observe(ms);
  }

  metrics(): Metric[] {
    const { proven, unproven } = this.#inFlight();
    return [
      {
        name: "rota_webhook_inflight_deliveries",
        help: "Callbacks in flight from this process, by whether their host has responded before.",
        type: "gauge",
        series: [
          { labels: { host: "proven" }, value: proven },
          { labels: { host: "unproven" }, value: unproven },
        ],
      },
      {
        name: "rota_webhook_deliveries_total",
        help: "Attempts of this process to deliver a callback, by outcome.",
        type: "counter",
        series: TRY_OUTCOMES.map((outcome) => ({ labels: { outcome }, value: this.#tries[outcome] })),
      },
      {
        name: "rota_webhook_delivery_seconds",
        help: "How long these attempts took.",
        type: "histogram",
        series: [{ labels: {}, value: this.#durations }],
      },
    ];
  }
}
