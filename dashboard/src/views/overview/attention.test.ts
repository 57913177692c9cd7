import { expect, test } from "vitest";
import { concernsOf } from "./attention.ts";

const AGENT = { submitted: 0, completed: 0, failed: 0, cancelled: 0, rejected: 0 };
const LANE = { name: "main", concurrency: 1, total: null, running: 0, waiting: 0, oldestWaitMs: null };

function titles(parts: Partial<Parameters<typeof concernsOf>[0]>): readonly string[] {
  return concernsOf({ agents: {}, reasons: [], lanes: [], ...parts }).map(({ title }) => title);
}

test("an agent is named when it keeps failing, the worst first", () => {
  const agents = {
    fine: { ...AGENT, completed: 90, failed: 10 },
    once: { ...AGENT, failed: 1 },
    bad: { ...AGENT, completed: 12, failed: 3 },
    worse: { ...AGENT, completed: 19, failed: 41 },
  };
  expect(titles({ agents })).toEqual(["Agent worse fails", "Agent bad fails"]);
});

test("of the reasons to wait those are named that do not end by themselves", () => {
  const reasons = [
    { code: "lane_full", lane: "main", count: 9 },
    { code: "no_executor", agentId: "pdf", count: 1 },
  ] as const;
  expect(titles({ reasons })).toEqual(["No executor for agent pdf"]);
});

test("a lane is named when something waits in it for long", () => {
  const lanes = [
    { ...LANE, oldestWaitMs: 300_000 },
    { ...LANE, name: "cron", oldestWaitMs: 301_000 },
    { ...LANE, name: "tasks", oldestWaitMs: 3_600_000 },
  ];
  expect(titles({ lanes })).toEqual([
    "Lane tasks: the oldest waits 1\u00a0h",
    "Lane cron: the oldest waits 5\u00a0min",
  ]);
});
