import { expect, test } from "vitest";
import { readInstances, readTabs } from "./pinchtab-locations.ts";

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
  expect(readInstances([{ id: 2, port: 9 }])).toEqual(new Map([["2", { port: 9 }]]));
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
  const addresses = [9868, 9869, 65_535].map((port) => ({ port }));
  expect([...(found ?? []).values()]).toEqual([...addresses, ...Array(10).fill(null)]);
  expect(readInstances({ instances: [{ id: "i", port: 1 }] })).toEqual(new Map([["i", { port: 1 }]]));
  expect(readInstances({ error: "x" })).toBeNull();
});

test.each<[unknown, unknown]>([
  ["http://10.0.0.7:9868", { url: "http://10.0.0.7:9868" }],
  ["https://tabs.example.com/one/", { url: "https://tabs.example.com/one" }],
  ["ftp://10.0.0.7", { port: 9 }],
  ["http://user:secret@10.0.0.7", { port: 9 }],
  ["http://10.0.0.7/?a=b", { port: 9 }],
  ["", { port: 9 }],
  [7, { port: 9 }],
])("an instance whose url is %j is reached there if that can be called, else at its port", (url, address) => {
  expect(readInstances([{ id: "i", url, port: 9 }])).toEqual(new Map([["i", address]]));
});
