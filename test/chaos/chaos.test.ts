import { expect, test } from "vitest";
import { runChaos } from "./run-chaos.ts";

/** The brief form of `npm run chaos`: the same faults, clients and checks, once and quickly. */
test.concurrent.each([
  { storage: "sqlite", nodes: 1, lastsMs: 7_000, seed: 1 },
  { storage: "postgres", nodes: 2, lastsMs: 8_000, seed: 2 },
] as const)(
  "keeps every promise on $storage, whatever is done to it",
  { timeout: 180_000 },
  async (options) => {
    const { findings, history, plan } = await runChaos({ ...options, brief: true });
    expect(findings).toEqual([]);
    // A run in which nothing happened would prove nothing.
    expect(plan.length).toBeGreaterThan(5);
    const { acknowledged, calls, runs, events } = history;
    const kinds = new Set(acknowledged.map(({ what }) => what));
    expect([...kinds]).toEqual(expect.arrayContaining(["task", "message", "scheduled"]));
    for (const list of [acknowledged, calls, runs, events]) expect(list.length).toBeGreaterThan(5);
  },
);
