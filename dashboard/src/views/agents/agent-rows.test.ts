import { describe, expect, test } from "vitest";
import type { AgentInfo, StatsSeries } from "../../../../src/client/index.ts";
import { agentRows, successRate } from "./agent-rows.ts";

const AGENTS: readonly AgentInfo[] = [
  { id: "research", source: "stored", maxInflight: 2 },
  { id: "index", source: "built-in" },
];
const SERIES: StatsSeries = {
  from: "2026-03-08T00:00:00Z",
  step: 3_600,
  series: [
    { key: "research", metric: "done", points: [3, 4] },
    { key: "research", metric: "failed", points: [1, 0] },
    { key: "research", metric: "runMs", points: [{ p50: 1, p95: 20, max: 30 }, null] },
    { key: "gone", metric: "tokens", points: [0, 500] },
  ],
};

describe("the rows of agents", () => {
  test("hold what runs, what waits and what ended, and agents that only tasks name", () => {
    const rows = agentRows({
      agents: AGENTS,
      workers: [
        { agents: ["research", "translator"], state: "idle" },
        { agents: ["research"], state: "lost" },
        { agents: ["*"], state: "idle" },
      ],
      waiting: { research: 5, writer: 1 },
      running: ["research", "research"],
      stats: SERIES,
    });
    expect(rows.map(({ id }) => id)).toEqual(["research", "writer", "gone", "index", "translator"]);
    expect(rows[0]).toEqual({
      id: "research",
      info: AGENTS[0],
      running: 2,
      waiting: 5,
      workers: 1,
      recent: { done: 7, failed: 1, tokens: 0, runP95: 20 },
    });
    expect(rows[2]?.recent?.tokens).toBe(500);
    expect(rows[3]?.recent).toEqual({ done: 0, failed: 0, tokens: 0, runP95: null });
  });

  test("keep their places while short tasks come and go: the work of the day decides, not that of the moment", () => {
    const parts = { agents: AGENTS, workers: [], waiting: {}, stats: SERIES };
    const order = (running: readonly string[]) => agentRows({ ...parts, running }).map(({ id }) => id);
    expect(order(["index"])).toEqual(["research", "index", "gone"]);
    expect(order(["research"]).at(0)).toBe("research");
  });

  test("say nothing of agents that the server sums up, and nothing before the statistics are there", () => {
    const other = { key: "other", metric: "done", points: [9] } as const;
    const stats = { ...SERIES, series: [...SERIES.series, other] };
    const parts = { agents: AGENTS, workers: [], waiting: {}, running: [] };
    const recent = (rows: ReturnType<typeof agentRows>) => rows.find(({ id }) => id === "index")?.recent;
    expect(recent(agentRows({ ...parts, stats }))).toBeUndefined();
    expect(recent(agentRows({ ...parts, stats: undefined }))).toBeUndefined();
  });
});

test.each([
  [{ done: 7, failed: 1 }, "87.5\u00a0% of 8"],
  [{ done: 2, failed: 0 }, "100\u00a0% of 2"],
  [{ done: 0, failed: 0 }, undefined],
])("the success rate of %o is %s", (ended, text) => {
  expect(successRate({ ...ended, tokens: 0, runP95: null })).toBe(text);
});
