import { expect, test } from "vitest";
import { readInstances, readTabs } from "./pinchtab-places.ts";

test.each([
  [[{ id: "t", instanceId: "i" }]],
  [[{ tabId: "t", instanceId: "i" }]],
  [[{ id: "t", instance: "i" }]],
  [[{ id: "t", instance: { id: "i" } }]],
  [{ tabs: [{ id: "t", instanceId: "i" }] }],
  [
    [
      { id: "t", instanceId: "i" },
      { id: "t", instanceId: "second" },
    ],
  ],
  [
    [
      null,
      7,
      "x",
      [],
      {},
      { id: "a" },
      { instanceId: "b" },
      { id: {}, instanceId: "c" },
      { id: "t", instanceId: "i" },
    ],
  ],
])("finds the tab and its instance in %j", (answer) => {
  expect(readTabs(answer)).toEqual(new Map([["t", "i"]]));
});

test("takes ids that are numbers for their digits", () => {
  expect(readTabs([{ id: 1, instanceId: 2 }])).toEqual(new Map([["1", "2"]]));
  expect(readInstances([{ id: 2, port: 9 }])).toEqual(new Map([["2", 9]]));
});

test.each([[[]], [null], [{ tabs: [] }], [{ tabs: null }]])("finds no tabs in %j", (answer) => {
  expect(readTabs(answer)).toEqual(new Map());
});

test.each([[{}], [{ error: "x" }], ["[]"], [7], [undefined], [{ tabs: {} }], [{ tabs: "x" }]])(
  "%j is no list of tabs",
  (answer) => {
    expect(readTabs(answer)).toBeNull();
  },
);

test("finds the ports of instances, as numbers or digits, and says where there is none", () => {
  const ports = [9868, "9869", 65_535, 0, 65_536, -1, 1.5, "80@evil", "", "080 ", null, undefined, {}];
  const found = readInstances(ports.map((port, index) => ({ id: `i${index}`, port })));
  expect([...(found ?? []).values()]).toEqual([9868, 9869, 65_535, ...Array(10).fill(null)]);
  expect(readInstances({ instances: [{ id: "i", port: 1 }] })).toEqual(new Map([["i", 1]]));
  expect(readInstances({ error: "x" })).toBeNull();
});
