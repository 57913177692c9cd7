import { expect, test } from "vitest";
import { claimedTask } from "../../../test/support/records.ts";
import type { RotaOptions } from "../../interface/options.ts";
import { silentLog } from "../../model/log.ts";
import { ManualClock } from "../../testing/manual-clock.ts";
import { CurrentSettings } from "../settings/current-settings.ts";
import { resolveSettings } from "../settings/settings.ts";
import { readAgent } from "./agent.ts";
import { AgentTable, type AgentTableOptions } from "./agent-table.ts";

const clock = new ManualClock();
const tenant = "default";

function makeTable(options: RotaOptions = {}, parts: Partial<AgentTableOptions> = {}): AgentTable {
  return new AgentTable({
    current: new CurrentSettings(resolveSettings(options, { clock })),
    executorDependencies: { clock },
    keyIds: [],
    log: silentLog,
    withWrits: (executor) => Object.assign(executor.bind(null), { withWrits: executor }),
    withoutWrits: (executor) => executor,
    posting: (executor) => executor,
    ...parts,
  });
}

test("knows the definition of each agent, and nothing of others", () => {
  const table = makeTable({ agents: { a: { lane: "team", maxInflight: 2, maxQueued: 7 }, b: {} } });
  expect(table.configuredIds()).toEqual(["a", "b"]);
  expect([
    table.laneOf({ tenant, agent: "a" }),
    table.maxInflight({ tenant, agent: "a" }),
    table.maxQueued({ tenant, agent: "a" }),
  ]).toEqual(["team", 2, 7]);
  expect([
    table.laneOf({ tenant, agent: "b" }),
    table.maxInflight({ tenant, agent: "b" }),
    table.maxQueued({ tenant, agent: "b" }),
  ]).toEqual([undefined, null, null]);
  expect([
    table.laneOf({ tenant, agent: "toString" }),
    table.maxInflight({ tenant, agent: "toString" }),
  ]).toEqual([undefined, null]);
});

test("an agent that the program registers again has its last definition", () => {
  const table = makeTable({ agents: { a: { lane: "team", maxInflight: 2 } } });
  table.set("a", {});
  expect([table.laneOf({ tenant, agent: "a" }), table.maxInflight({ tenant, agent: "a" })]).toEqual([
    undefined,
    null,
  ]);
  table.set("a", { maxInflight: 5 });
  expect(table.maxInflight({ tenant, agent: "a" })).toBe(5);
});

test("an agent of the program wins over the configuration, and that wins over a stored one", () => {
  const table = makeTable({ agents: { a: { maxInflight: 2 }, b: { maxInflight: 2 } } });
  const stored = readAgent({ maxInflight: 3 }, { clock, prefix: "", faults: [] });
  for (const agent of ["a", "b", "c", "index"]) table.putStored({ tenant, agent }, stored);
  table.set("a", { maxInflight: 1 });
  expect(table.ids(tenant)).toEqual(["a", "b", "c", "index"]);
  expect(
    table
      .ids(tenant)
      .map((agent) => [table.maxInflight({ tenant, agent }), table.find({ tenant, agent })?.source]),
  ).toEqual([
    [1, "config"],
    [2, "config"],
    [3, "stored"],
    [3, "stored"],
  ]);
});

test("what one tenant stored, another does not have, and each has its own of the same name", () => {
  const byAcme = () => "acme";
  const byZeta = () => "zeta";
  const table = makeTable({ agents: { shared: { maxInflight: 4 } } });
  const read = (executor: () => string) =>
    readAgent({ executor, maxInflight: 3 }, { clock, prefix: "", faults: [] });
  table.putStored({ tenant: "acme", agent: "writer" }, read(byAcme));
  table.putStored({ tenant: "zeta", agent: "writer" }, read(byZeta));
  const executorOf = (owner: string) =>
    table.executorFor(claimedTask({ tenant: owner, agent: "writer" }).task);
  expect(["acme", "zeta", tenant].map(executorOf)).toEqual([byAcme, byZeta, undefined]);
  expect(table.ids("acme")).toEqual(["index", "shared", "writer"]);
  expect(table.ids(tenant)).toEqual(["index", "shared"]);
  expect(table.maxInflight({ tenant: "zeta", agent: "shared" })).toBe(4);
  expect(table.maxInflight({ tenant, agent: "writer" })).toBeNull();
});

test("`index` is always there", () => {
  expect(makeTable().ids(tenant)).toEqual(["index"]);
  expect(makeTable().find({ tenant, agent: "index" })?.source).toBe("built-in");
  expect(makeTable({ agents: { index: {} } }).find({ tenant, agent: "index" })?.source).toBe("config");
});

test("finds the agent's executor, else that of the kind, else the echo of `index`", () => {
  const own = () => 1;
  const byKind = () => 2;
  const table = makeTable({ agents: { a: { executor: own } } });
  expect(table.executorFor(claimedTask({ agent: "a" }).task)).toBe(own);
  expect(table.executorFor(claimedTask({ agent: "b" }).task)).toBeUndefined();
  expect(table.executorFor(claimedTask({ agent: "index" }).task)).toBeTypeOf("function");
  const kinds = makeTable({ executors: { custom: byKind } });
  expect(kinds.executorFor(claimedTask({ agent: "b" }).task)).toBe(byKind);
  expect(kinds.executorFor(claimedTask({ agent: "index" }).task)).toBe(byKind);
});

test.each([
  ["two\nlines", {}, "`agentId` must be 1 to 128 characters"],
  ["a", { maxInFlight: 1 }, "did you mean `agents.a.maxInflight`?"],
  ["a", { maxInflight: 0 }, "`agents.a.maxInflight` must be an integer from 1"],
  ["a", { lane: 5 }, "`agents.a.lane` must be a string"],
  ["a", 5, "`agents.a` must be an object"],
  ["a", undefined, "`agents.a` must be an object, not undefined"],
  ["a", { executor: { type: "ecko" } }, "`agents.a.executor.type` must be"],
])("refuses the definition of %s as %j", (id, options, message) => {
  const table = makeTable();
  expect(() => table.set(id, options as never)).toThrow(message);
  expect(table.ids(tenant)).toEqual(["index"]);
});

test("carries out the writs in a result only for agents with `writs`, and reports them refused for others", () => {
  const own = () => "done";
  const refusing = () => "refused";
  const table = makeTable(
    {
      agents: { a: { executor: own, writs: true }, b: { executor: own, writs: false }, c: { executor: own } },
    },
    { withoutWrits: (executor) => (executor === own ? refusing : executor) },
  );
  const found = ["a", "b", "c"].map((agent) => table.executorFor(claimedTask({ agent }).task));
  expect(found).toEqual([expect.objectContaining({ withWrits: own }), refusing, refusing]);
});
