import { expect, test } from "vitest";
import { Chance } from "./chance.ts";
import { type FaultKind, makePlan, type PlanParams } from "./plan.ts";

const PARAMS = { storage: "postgres", nodes: 3, workers: 2, lastsMs: 60_000, brief: false } as const;

function plan(seed: number, params: Partial<PlanParams> = {}) {
  return makePlan({ ...PARAMS, chance: new Chance(seed), ...params });
}

test("the same seed makes the same plan, another one another", () => {
  expect(plan(7)).toEqual(plan(7));
  expect(plan(8)).not.toEqual(plan(7));
});

test("steps come in order and within the time, and nothing strikes a node or worker that is struck", () => {
  for (let seed = 1; seed <= 50; seed += 1) {
    const freeAt = new Map<string, number>();
    let last = 0;
    for (const { atMs, fault } of plan(seed)) {
      expect(atMs).toBeGreaterThan(last);
      expect(atMs).toBeLessThan(PARAMS.lastsMs);
      last = atMs;
      if (!("node" in fault) && !("worker" in fault)) continue;
      const whom = "node" in fault ? `node ${fault.node}` : `worker ${fault.worker}`;
      expect(atMs).toBeGreaterThanOrEqual(freeAt.get(whom) ?? 0);
      freeAt.set(whom, atMs + fault.forMs);
    }
  }
});

const OF_WORKERS = ["cut-worker", "kill-worker", "lose-answers", "pause-worker"];
const KINDS = {
  sqlite: ["fill", "kill", "pause", "upstream", ...OF_WORKERS].sort(),
  postgres: [
    "cancel-statements",
    "clock",
    "crash-database",
    "cut",
    "kill",
    "lock",
    "pause",
    "restart-database",
    "terminate",
    "upstream",
    ...OF_WORKERS,
  ].sort(),
} as const;

test.each([
  { storage: "sqlite", nodes: 1, lastsMs: 7_000, brief: true },
  { storage: "postgres", nodes: 2, lastsMs: 7_000, brief: true },
  { storage: "sqlite", nodes: 1, lastsMs: 60_000, brief: false },
  { storage: "postgres", nodes: 3, lastsMs: 60_000, brief: false },
  // A short run.
  { storage: "sqlite", nodes: 1, lastsMs: 6_000, brief: false },
  { storage: "postgres", nodes: 3, lastsMs: 6_000, brief: false },
] as const)("every plan for $storage holds every kind of fault in $lastsMs ms (brief: $brief)", (params) => {
  for (let seed = 1; seed <= 300; seed += 1) {
    const found = new Set<FaultKind>(plan(seed, params).map(({ fault }) => fault.kind));
    expect([...found].sort()).toEqual(KINDS[params.storage]);
  }
});

test("a long plan lets nodes and workers sleep and be cut off for longer than their lease", () => {
  const steps = Array.from({ length: 10 }, (_, seed) => plan(seed)).flat();
  for (const kind of ["pause", "cut", "pause-worker", "cut-worker"]) {
    const longest = steps.map(({ fault }) => (fault.kind === kind && "forMs" in fault ? fault.forMs : 0));
    expect(Math.max(...longest)).toBeGreaterThan(15_000);
  }
});
