import { expect, test } from "vitest";
import { runChaos } from "./run-chaos.ts";

/** The brief form of `npm run chaos`: the same faults, clients and checks, once and quickly. */
test.concurrent.each([
  { storage: "sqlite", nodes: 1, lastsMs: 7_000, seed: 1 },
  { storage: "postgres", nodes: 2, lastsMs: 7_000, seed: 2 },
] as const)(
  "keeps every promise on $storage, whatever is done to it",
  { timeout: 180_000 },
  async (options) => {
    const { findings, history, plan } = await runChaos({ ...options, brief: true });
    expect(findings).toEqual([]);
    // A run in which nothing happened would prove nothing.
    const kinds = new Set(history.acknowledged.map(({ what }) => what));
    expect([...kinds]).toEqual(expect.arrayContaining(["task", "message", "scheduled"]));
    const { calls, callbacks, edits, knocks, finishes = [] } = history;
    for (const [what, seen] of Object.entries({ calls, callbacks, edits, knocks, finishes }))
      expect(seen, what).not.toEqual([]);
    expect(plan).not.toEqual([]);
    expect(history.deliveries.map(({ status }) => status)).toContain("delivered");
    const agents = [...history.tasks.values()].map(({ agentId }) => agentId);
    expect(agents).toEqual(expect.arrayContaining(Object.keys(history.homes ?? {})));
  },
);
