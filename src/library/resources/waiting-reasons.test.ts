import { expect, test } from "vitest";
import type { WaitingQueue, WaitingTasks } from "../../storage/storage.ts";
import type { ProcessSituation } from "./explain-task.ts";
import { waitingReasons } from "./waiting-reasons.ts";

const NOTHING: WaitingTasks = {
  forTasks: 0,
  delayed: 0,
  heldBack: 0,
  queues: [],
  readyElsewhere: 0,
  tenant: { disabled: false, inflight: 0, max: null },
};

const MEMORY = { held: 0, max: 0, tenantMax: null, hasRoom: true, heldBy: () => 0, isOverShare: () => false };

const RUNNING: ProcessSituation = {
  state: "running",
  enabled: true,
  lane: { running: 0, concurrency: 4 },
  memory: MEMORY,
  alonePhase: "open",
  now: 0,
  noExecutorMs: 60_000,
};

function queue(agent: string, ready: number, limits: Partial<WaitingQueue["limits"]> = {}): WaitingQueue {
  const none = { inflight: 1, max: null };
  return {
    lane: "tasks",
    agent,
    ready,
    executable: true,
    alone: false,
    limits: { lane: { inflight: 1, total: null }, laneShare: null, inLane: none, agent: none, ...limits },
  };
}

function reasonsOf(waiting: Partial<WaitingTasks>, process: Partial<ProcessSituation> = {}) {
  return waitingReasons(
    { ...NOTHING, ...waiting },
    { tenant: "t", processSituation: () => ({ ...RUNNING, ...process }) },
  );
}

test("nothing waits for no reason", () => {
  expect(reasonsOf({})).toEqual({ reasons: [], total: 0 });
});

test("each task is counted once, most first", () => {
  const waiting = { forTasks: 1, delayed: 3, heldBack: 6 };
  expect(reasonsOf({ ...waiting, queues: [queue("a", 10), queue("b", 1)] })).toEqual({
    reasons: [
      { code: "tasks_ahead", lane: "tasks", agentId: "a", count: 9 },
      { code: "held_back", count: 6 },
      { code: "not_before", count: 3 },
      { code: "others_first", lane: "tasks", count: 2 },
      { code: "waiting_for_task", count: 1 },
    ],
    total: 21,
  });
});

test.each<[string, Partial<WaitingTasks>, Partial<ProcessSituation>]>([
  ["scheduler_disabled", {}, { enabled: false }],
  ["not_started", {}, { state: "created" }],
  ["draining", {}, { state: "draining" }],
  ["tenant_disabled", { tenant: { disabled: true, inflight: 0, max: null } }, {}],
])("what holds everything is the only reason: %s", (code, waiting, process) => {
  const some = { forTasks: 2, queues: [queue("a", 3)], readyElsewhere: 1, ...waiting };
  expect(reasonsOf(some, process)).toEqual({ reasons: [{ code, count: 6 }], total: 6 });
});

const BUSY = { running: 4, concurrency: 4 };
const NO_MEMORY = { memory: { ...MEMORY, hasRoom: false } };
const LANE_FULL = { lane: { inflight: 4, total: 4 } };
const LANE_SHARE = { laneShare: { inflight: 3, max: 3 } };
const FULL = { inflight: 4, max: 4 };

test.each<[object, Partial<WaitingQueue>, Partial<WaitingTasks>, Partial<ProcessSituation>]>([
  [{ code: "no_executor", lane: "tasks", agentId: "a" }, { executable: false }, {}, { lane: null }],
  [{ code: "lane_not_served", lane: "tasks" }, {}, {}, { lane: null }],
  [{ code: "lane_not_served", lane: "tasks" }, {}, {}, { lane: { running: 0, concurrency: 0 } }],
  [
    { code: "runs_alone", lane: "tasks", agentId: "a" },
    { alone: true },
    {},
    { alonePhase: "alone", lane: BUSY },
  ],
  [{ code: "node_runs_alone" }, {}, {}, { alonePhase: "closing", lane: BUSY }],
  [{ code: "node_runs_alone" }, {}, {}, { alonePhase: "alone" }],
  [{ code: "node_full", lane: "tasks" }, {}, {}, { lane: BUSY, ...NO_MEMORY }],
  [{ code: "node_memory" }, queue("a", 3, LANE_FULL), {}, NO_MEMORY],
  [{ code: "node_memory" }, {}, {}, { memory: { ...MEMORY, isOverShare: (tenant) => tenant === "t" } }],
  [{ code: "lane_full", lane: "tasks" }, queue("a", 3, { ...LANE_FULL, ...LANE_SHARE }), {}, {}],
  [
    { code: "tenant_at_lane_share", lane: "tasks" },
    queue("a", 3, LANE_SHARE),
    { tenant: { disabled: false, inflight: 4, max: 4 } },
    {},
  ],
  [{ code: "tenant_full" }, {}, { tenant: { disabled: false, ...FULL } }, {}],
  [{ code: "agent_full", lane: "tasks", agentId: "a" }, queue("a", 3, { agent: FULL }), {}, {}],
  [{ code: "agent_full", lane: "tasks", agentId: "a" }, queue("a", 3, { inLane: FULL }), {}, {}],
])("a queue waits for %j", (reason, own, waiting, process) => {
  const queues = [{ ...queue("a", 3), ...own }];
  expect(reasonsOf({ ...waiting, queues }, process).reasons).toEqual([{ ...reason, count: 3 }]);
});

test("those that run alone are counted beside others of their agent", () => {
  const queues = [queue("a", 3), { ...queue("a", 2), alone: true }];
  expect(reasonsOf({ queues })).toEqual({
    reasons: [
      { code: "runs_alone", lane: "tasks", agentId: "a", count: 2 },
      { code: "tasks_ahead", lane: "tasks", agentId: "a", count: 2 },
      { code: "others_first", lane: "tasks", count: 1 },
    ],
    total: 5,
  });
});

test("the fifty that hold most are named, the rest is other", () => {
  const queues = Array.from({ length: 60 }, (_, index) => queue(`a${index}`, 100 - index, { agent: FULL }));
  const { reasons, total } = reasonsOf({ queues, readyElsewhere: 5 });
  expect(reasons).toHaveLength(51);
  expect(reasons[0]).toEqual({ code: "agent_full", lane: "tasks", agentId: "a0", count: 100 });
  expect(reasons.at(-1)?.code).toBe("other");
  expect(reasons.reduce((sum, { count }) => sum + count, 0)).toBe(total);
});
