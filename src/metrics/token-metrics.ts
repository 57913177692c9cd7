import type { Metric } from "./text-format.ts";

/** Tokens and cost of tasks. */
export interface Tokens {
  readonly input: number;
  readonly output: number;
  /** In millionths of the currency of the prices. */
  readonly costMicros: number;
}

const DIRECTIONS = ["input", "output"] as const;

/** Tokens and cost by agent. */
export function tokenMetrics(byAgent: ReadonlyMap<string, Tokens>): Metric[] {
  return [
    {
      name: "rota_tokens_total",
      help: "Tokens into and out of models, as reported by the attempts of this process.",
      type: "counter",
      series: [...byAgent].flatMap(([agent, tokens]) =>
        DIRECTIONS.map((direction) => ({ labels: { agent, direction }, value: tokens[direction] })),
      ),
    },
    {
      name: "rota_cost_micros_total",
      help: "Cost in millionths of a currency unit, as reported by the attempts of this process.",
      type: "counter",
      series: [...byAgent].map(([agent, { costMicros }]) => ({ labels: { agent }, value: costMicros })),
    },
  ];
}
