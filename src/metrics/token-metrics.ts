import type { Metric } from "./text-format.ts";

/** What tasks cost. */
export interface Tokens {
  readonly input: number;
  readonly output: number;
}

const DIRECTIONS = ["input", "output"] as const;

/** Tokens by agent. */
export function tokenMetrics(byAgent: ReadonlyMap<string, Tokens>): Metric[] {
  return [
    {
      name: "rota_tokens_total",
      help: "Tokens that attempts of this process say they took, in and out of a model.",
      type: "counter",
      series: [...byAgent].flatMap(([agent, tokens]) =>
        DIRECTIONS.map((direction) => ({ labels: { agent, direction }, value: tokens[direction] })),
      ),
    },
  ];
}
