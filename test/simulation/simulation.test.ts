import { describe, expect, test } from "vitest";
import type { Storage } from "../../src/storage/storage.ts";
import { runSimulation, type SimulationReport } from "./run-simulation.ts";
import { LOCAL_AGENTS } from "./settings.ts";
import { SPOILERS } from "./spoilers.ts";
import type { SimulatedStorage } from "./world.ts";

const STORAGES = ["oracle", "sqlite"] as const satisfies readonly SimulatedStorage[];

/** A slow machine looks at fewer worlds, rather than holding up the whole run. `SIMULATION_SECONDS` looks at more. */
const TIME_LIMIT_MS = Number(process.env["SIMULATION_SECONDS"] ?? 4) * 1_000;
const TEST_TIMEOUT_MS = TIME_LIMIT_MS + 120_000;
/** The first of the worlds to look at: other seeds than those that every test run uses. */
const FROM = Number(process.env["SIMULATION_FROM"] ?? 1);
/** The one seed to repeat. */
const ASKED_FOR = process.env["SIMULATION_SEED"];

/** Says what is needed to see it again. */
function expectKept({ seed, storage, climate, findings }: SimulationReport): void {
  const again = `SIMULATION_SEED=${seed} npx vitest run test/simulation`;
  expect(findings, `${storage}: ${again}\n${JSON.stringify(climate)}`).toEqual([]);
}

describe("nodes in a world that goes wrong", { timeout: TEST_TIMEOUT_MS }, () => {
  test.runIf(ASKED_FOR !== undefined).each(STORAGES)(
    "keep every promise in the world that was asked for, on %s",
    async (storage) => {
      expectKept(await runSimulation({ seed: Number(ASKED_FOR), storage }));
    },
  );

  test.skipIf(ASKED_FOR !== undefined).each(STORAGES)(
    "keep every promise on %s, as long as there is time to look",
    async (storage) => {
      const end = performance.now() + TIME_LIMIT_MS;
      for (let seed = FROM; performance.now() < end; seed += 1)
        expectKept(await runSimulation({ seed, storage }));
    },
  );

  test.each(STORAGES)("claim tasks ahead on %s and begin them", async (storage) => {
    let begun = 0;
    const spoil = (unspoiled: Storage): Storage => ({
      ...unspoiled,
      tasks: {
        ...unspoiled.tasks,
        async finishAndClaim(params) {
          begun += params.begun?.length ?? 0;
          return unspoiled.tasks.finishAndClaim(params);
        },
      },
    });
    for (let seed = 1; begun < 10 && seed <= 10; seed += 1)
      expectKept(await runSimulation({ seed, storage, spoil }));
    expect(begun).toBeGreaterThanOrEqual(10);
  });

  test.each(STORAGES)("take messages into running tasks on %s", async (storage) => {
    let taken = 0;
    for (let seed = 1; taken === 0 && seed <= 10; seed += 1) {
      const report = await runSimulation({ seed, storage });
      expectKept(report);
      const results = [...report.history.tasks.values()].map(({ result }) => JSON.stringify(result ?? null));
      taken += results.filter((result) => result.includes("steeredInto")).length;
    }
    expect(taken).toBeGreaterThan(0);
  });

  test.each(STORAGES)("do the same on %s, step by step, for the same seed", async (storage) => {
    const once = await runSimulation({ seed: 7, storage });
    const again = await runSimulation({ seed: 7, storage });
    const other = await runSimulation({ seed: 8, storage });
    expect(again.trace).toBe(once.trace);
    expect(other.trace).not.toBe(once.trace);
    // Nothing would prove nothing.
    for (const { steps, history } of [once, other]) {
      expect(steps).toBeGreaterThan(1_000);
      expect(history.tasks.size).toBeGreaterThan(20);
      const agents: string[] = [...history.tasks.values()].map(({ agentId }) => agentId);
      expect(LOCAL_AGENTS.some((agent) => agents.includes(agent))).toBe(true);
    }
  });
});

describe("a storage is found out", { timeout: TEST_TIMEOUT_MS }, () => {
  test.each(Object.entries(SPOILERS))("that %s", async (_how, spoil) => {
    let found = 0;
    for (let seed = 1; found === 0 && seed <= 20; seed += 1)
      found = (await runSimulation({ seed, spoil })).findings.length;
    expect(found).toBeGreaterThan(0);
  });
});
