import { expect, test } from "vitest";
import { claimedTask } from "../../test/support/records.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { Agents, type AgentsOptions } from "./agents.ts";

function makeAgents(options: Partial<AgentsOptions> = {}): Agents {
  return new Agents({ agents: {}, executors: {}, clock: new ManualClock(0), ...options });
}

test("knows what it was told of each agent, and nothing of others", () => {
  const agents = makeAgents({ agents: { a: { lane: "team", maxInflight: 2 }, b: {} } });
  expect(agents.ids()).toEqual(["a", "b"]);
  expect([agents.laneOf("a"), agents.maxInflight("a")]).toEqual(["team", 2]);
  expect([agents.laneOf("b"), agents.maxInflight("b")]).toEqual([undefined, null]);
  expect([agents.laneOf("toString"), agents.maxInflight("toString")]).toEqual([undefined, null]);
});

test("an agent told of again is what it was told last", () => {
  const agents = makeAgents({ agents: { a: { lane: "team", maxInflight: 2 } } });
  agents.set("a", {});
  expect([agents.laneOf("a"), agents.maxInflight("a")]).toEqual([undefined, null]);
});

test("finds the agent's executor, else that of the kind, else the echo of `index`", () => {
  const own = () => 1;
  const byKind = () => 2;
  const agents = makeAgents({ agents: { a: { executor: own } } });
  expect(agents.executorFor(claimedTask({ agent: "a" }).task)).toBe(own);
  expect(agents.executorFor(claimedTask({ agent: "b" }).task)).toBeUndefined();
  expect(agents.executorFor(claimedTask({ agent: "index" }).task)).toBeTypeOf("function");
  const kinds = makeAgents({ executors: { custom: byKind } });
  expect(kinds.executorFor(claimedTask({ agent: "b" }).task)).toBe(byKind);
  expect(kinds.executorFor(claimedTask({ agent: "index" }).task)).toBe(byKind);
});

test.each([
  [{ agents: { "two words": {} } }, "1 to 128 of the characters"],
  [{ agents: { a: { maxInFlight: 1 } } }, "did you mean `agents.a.maxInflight`?"],
  [{ agents: { a: { maxInflight: 0 } } }, "`agents.a.maxInflight` must be an integer from 1"],
  [{ agents: { a: { lane: 5 } } }, "`lane` must be a string"],
  [{ agents: { a: 5 } }, "`agents.a` must be an object"],
  [{ agents: { a: { executor: { type: "ecko" } } } }, "did you mean `echo`?"],
  [{ executors: { mesage: { type: "echo" } } }, "did you mean `executors.message`?"],
])("refuses %j", (options, message) => {
  expect(() => makeAgents(options as never)).toThrow(message);
});
