import type { Metric } from "./text-format.ts";

const REFUSALS = ["rate", "quota"] as const;
/** Why a request was refused: its key asks for too much at once, or its tenant stores too much. */
export type Refusal = (typeof REFUSALS)[number];

/** The requests that this process refused because of what they cost. */
export class RequestMetrics {
  readonly #refused: Record<Refusal, number> = { rate: 0, quota: 0 };

  refused(reason: Refusal): void {
    this.#refused[reason] += 1;
  }

  metrics(): Metric[] {
    return [
      {
        name: "rota_requests_refused_total",
        help: "Requests that this process refused because of what they cost: the rate of their key, or what their tenant stores.",
        type: "counter",
        series: REFUSALS.map((reason) => ({ labels: { reason }, value: this.#refused[reason] })),
      },
    ];
  }
}
