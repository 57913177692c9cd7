import { expect, test } from "vitest";
import {
  type Answer,
  breakOff,
  endless,
  hang,
  json,
  nowhere,
  PinchTab,
} from "../../test/support/pinchtab.ts";
import { runnable } from "../../test/support/run-executor.ts";
import { TargetGuard } from "../outbound/target-guard.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { Latch, until } from "../testing/signals.ts";

const click = { kind: "action", action: "click", tabId: "tab-1" } as const;

/** A PinchTab server with two instances and a tab in the first, and the executor that asks it. */
async function pinchTabWithTwo(options: { cacheSec?: number; headers?: Record<string, string> } = {}) {
  const pinchTab = await PinchTab.start();
  await pinchTab.startInstance("inst_1");
  await pinchTab.startInstance("inst_2");
  pinchTab.openTab("tab-1", "inst_1");
  const executor = runnable({ type: "tab-action", url: pinchTab.url, resolver: "pinchtab", ...options });
  return { pinchTab, ...executor };
}

/** How often the server was asked. */
function lookups(pinchTab: PinchTab): number {
  return pinchTab.seenBy("server").filter(({ path }) => path?.startsWith("/instances/tabs")).length;
}

test("asks which instance has the tab, and where that is", async () => {
  const { pinchTab, run } = await pinchTabWithTwo({ headers: { authorization: "Bearer secret" } });
  pinchTab.openTab("tab-2", "inst_2");
  expect(await run({ ...click, tabId: "tab-2" })).toEqual({ success: true, by: "inst_2" });
  expect(pinchTab.seen.map(({ by, method, path }) => `${by}: ${method} ${path}`)).toEqual([
    "server: GET /instances/tabs",
    "server: GET /instances",
    "inst_2: POST /tabs/tab-2/action",
  ]);
  for (const { headers } of pinchTab.seen) expect(headers.authorization).toBe("Bearer secret");
});

test("a URL with a path is where the server is; instances are found at their ports alone", async () => {
  const { pinchTab } = await pinchTabWithTwo();
  pinchTab.answers.set("/behind/proxy/instances/tabs", (it) =>
    json(it, 200, { tabs: [{ tabId: "tab-1", instance: { id: 1 } }] }),
  );
  const port = Number(new URL(await pinchTab.startInstance("1")).port);
  pinchTab.openTab("tab-1", "1");
  pinchTab.answers.set("/behind/proxy/instances", (it) => json(it, 200, [{ id: 1, port }]));
  const url = `${pinchTab.url}/behind/proxy/`;
  const { run } = runnable({ type: "tab-action", url, resolver: "pinchtab" });
  expect(await run(click)).toEqual({ success: true, by: "1" });
  expect(pinchTab.seenBy("1")[0]?.path).toBe("/tabs/tab-1/action");
});

// -------------------------------------------------------------------------------------------------- the cache

test("remembers for five seconds where tabs are, all of them", async () => {
  const { pinchTab, run, clock } = await pinchTabWithTwo();
  pinchTab.openTab("tab-2", "inst_2");
  await run(click);
  await run({ ...click, tabId: "tab-2" });
  await clock.advance(4_999);
  await run(click);
  expect(lookups(pinchTab)).toBe(1);
  await clock.advance(1);
  await run(click);
  expect(lookups(pinchTab)).toBe(2);
});

test("remembers for as long as configured, or not at all", async () => {
  const long = await pinchTabWithTwo({ cacheSec: 60 });
  await long.run(click);
  await long.clock.advance(59_999);
  await long.run(click);
  expect(lookups(long.pinchTab)).toBe(1);
  const never = await pinchTabWithTwo({ cacheSec: 0 });
  await never.run(click);
  await never.run(click);
  expect(lookups(never.pinchTab)).toBe(2);
});

test("remembers nothing of tabs that are not there", async () => {
  const { pinchTab, run } = await pinchTabWithTwo();
  await expect(run({ ...click, tabId: "tab-2" })).rejects.toThrow("no instance has it");
  pinchTab.openTab("tab-2", "inst_2");
  expect(await run({ ...click, tabId: "tab-2" })).toEqual({ success: true, by: "inst_2" });
});

test("a tab that moved is found where it is now, and remembered there", async () => {
  const { pinchTab, run } = await pinchTabWithTwo();
  await run(click);
  pinchTab.openTab("tab-1", "inst_2");
  expect(await run(click)).toEqual({ success: true, by: "inst_2" });
  expect([lookups(pinchTab), pinchTab.seenBy("inst_1").length]).toEqual([2, 2]);
  await run(click);
  expect([lookups(pinchTab), pinchTab.seenBy("inst_1").length]).toEqual([2, 2]);
});

test("a wrong location is not remembered, even if the right one is unknown", async () => {
  const { pinchTab, run } = await pinchTabWithTwo();
  await run(click);
  pinchTab.openTab("tab-1", "inst_2");
  pinchTab.answers.set("/instances/tabs", (response) => json(response, 500, {}));
  await expect(run(click)).rejects.toThrow("GET /instances/tabs answered HTTP 500");
  pinchTab.answers.clear();
  expect(await run(click)).toEqual({ success: true, by: "inst_2" });
  expect(pinchTab.seenBy("inst_1")).toHaveLength(2);
});

test("a tab whose instance is gone is found where it is now", async () => {
  const { pinchTab, run } = await pinchTabWithTwo();
  await pinchTab.killInstance("inst_1");
  await expect(run(click)).rejects.toMatchObject({ name: "CallError", neverSent: true });
  pinchTab.openTab("tab-1", "inst_2");
  expect(await run(click)).toEqual({ success: true, by: "inst_2" });
});

test("an action that its instance may have got is not sent to another", async () => {
  const { pinchTab, run } = await pinchTabWithTwo();
  await run(click);
  pinchTab.openTab("tab-1", "inst_2");
  pinchTab.onAction = (response) => response.destroy();
  await expect(run(click)).rejects.toMatchObject({ name: "CallError", neverSent: false });
  expect([lookups(pinchTab), pinchTab.seenBy("inst_2").length]).toEqual([1, 0]);
});

test("a 404 of the instance that has the tab stands, and is asked about once", async () => {
  const { pinchTab, run } = await pinchTabWithTwo();
  pinchTab.onAction = (response) => json(response, 404, { error: "no such element" });
  await expect(run(click)).rejects.toMatchObject({
    message: 'HTTP 404: {"error":"no such element"}',
    permanent: true,
  });
  expect([lookups(pinchTab), pinchTab.seenBy("inst_1").length]).toEqual([2, 1]);
});

test("a tab that moves on and on is followed once an attempt", async () => {
  const { pinchTab, run } = await pinchTabWithTwo();
  pinchTab.onAction = (response) => {
    pinchTab.openTab("tab-1", "inst_2");
    json(response, 404, { error: "tab not found" });
  };
  await expect(run(click)).rejects.toMatchObject({ permanent: true });
  expect([pinchTab.seenBy("inst_1").length, pinchTab.seenBy("inst_2").length]).toEqual([1, 1]);
});

test("a closed tab has no location", async () => {
  const { pinchTab, run } = await pinchTabWithTwo();
  await run(click);
  pinchTab.closeTab("tab-1");
  await expect(run(click)).rejects.toMatchObject({
    name: "PermanentError",
    message: 'cannot resolve tab "tab-1": no instance has it',
  });
});

test("a tab that the server does not list yet is found by asking it to look anew", async () => {
  const { pinchTab, run } = await pinchTabWithTwo();
  pinchTab.rememberTabs();
  pinchTab.openTab("tab-2", "inst_2");
  expect(await run({ ...click, tabId: "tab-2" })).toEqual({ success: true, by: "inst_2" });
  expect(pinchTab.seenBy("server").map(({ path }) => path)).toEqual([
    "/instances/tabs",
    "/instances",
    "/instances/tabs?fresh=1",
    "/instances",
  ]);
});

test("a tab that has moved behind the server's back is found by asking it to look anew", async () => {
  const { pinchTab, run } = await pinchTabWithTwo();
  pinchTab.rememberTabs();
  pinchTab.openTab("tab-1", "inst_2");
  expect(await run(click)).toEqual({ success: true, by: "inst_2" });
});

test("a server that cannot be asked to look anew is asked as before", async () => {
  const { pinchTab, run } = await pinchTabWithTwo();
  pinchTab.looksAnew = false;
  await expect(run({ ...click, tabId: "tab-2" })).rejects.toThrow("no instance has it");
});

test("an instance that has a URL is reached there", async () => {
  const { pinchTab, run } = await pinchTabWithTwo();
  const url = await pinchTab.startInstance("far");
  pinchTab.openTab("tab-1", "far");
  pinchTab.answers.set("/instances", (it) => json(it, 200, [{ id: "far", url: `${url}/`, port: "1" }]));
  expect(await run(click)).toEqual({ success: true, by: "far" });
});

test("an instance's URL that a guard forbids is not called", async () => {
  const { pinchTab } = await pinchTabWithTwo();
  const url = (await pinchTab.startInstance("far")).replace("127.0.0.1", "127.0.0.2");
  pinchTab.openTab("tab-1", "far");
  pinchTab.answers.set("/instances", (it) => json(it, 200, [{ id: "far", url }]));
  const guard = new TargetGuard({ allow: ["127.0.0.1"], clock: new ManualClock() });
  const config = { type: "tab-action", url: pinchTab.url, resolver: "pinchtab" } as const;
  await expect(runnable(config, { guard }).run(click)).rejects.toMatchObject({
    name: "PermanentError",
    message: expect.stringContaining("must not lead to 127.0.0.2"),
  });
});

// ------------------------------------------------------------------------------------------------------ tabs that cannot be resolved

test("a tab that no instance has fails for good", async () => {
  const { pinchTab, run } = await pinchTabWithTwo();
  await expect(run({ ...click, tabId: "__proto__" })).rejects.toMatchObject({
    name: "PermanentError",
    message: 'cannot resolve tab "__proto__": no instance has it',
  });
  expect(pinchTab.seenBy("inst_1")).toEqual([]);
});

test("a tab whose instance is not listed fails for good", async () => {
  const { pinchTab, run } = await pinchTabWithTwo();
  pinchTab.forgetInstance("inst_1");
  await expect(run(click)).rejects.toMatchObject({
    name: "PermanentError",
    message: 'cannot resolve tab "tab-1": its instance "inst_1" is not in the list',
  });
});

test("an instance that only starts is worth another try", async () => {
  const { pinchTab, run } = await pinchTabWithTwo();
  pinchTab.answers.set("/instances", (it) => json(it, 200, [{ id: "inst_1", port: "", status: "starting" }]));
  await expect(run(click)).rejects.toMatchObject({
    name: "Error",
    message: 'cannot resolve tab "tab-1": its instance "inst_1" has no port yet',
  });
});

test.each<[string, Answer, string]>([
  ["that is not JSON", (it) => it.end("<html>"), "answered something else than a list in JSON"],
  ["that breaks off", breakOff, "broke off: it closed the connection"],
  [
    "that is another thing",
    (it) => json(it, 200, { error: "x" }),
    "answered something else than a list in JSON",
  ],
  ["without end", endless("[1,".repeat(10_000)), "answered more than 4194304 bytes"],
  ["that is nested deeply", (it) => it.end("[".repeat(100_000) + "]".repeat(100_000)), "no instance has it"],
])("a response %s: cannot resolve", async (_what, answer, reason) => {
  const { pinchTab, run } = await pinchTabWithTwo();
  pinchTab.answers.set("/instances/tabs", answer);
  const failed = run(click);
  await expect(failed).rejects.toThrow(/^cannot resolve tab "tab-1": /);
  await expect(failed).rejects.toThrow(reason);
});

test.each([
  [500, false],
  [503, false],
  [429, false],
  [302, false],
  [401, true],
  [404, true],
])("a response with status %i is a failure, for good: %s", async (status, permanent) => {
  for (const path of ["/instances/tabs", "/instances"]) {
    const { pinchTab, run } = await pinchTabWithTwo();
    pinchTab.answers.set(path, (it) => it.writeHead(status, { "retry-after": "3" }).end("sorry"));
    await expect(run(click)).rejects.toMatchObject({
      name: "HttpError",
      message: `cannot resolve tab "tab-1": GET ${path} answered HTTP ${status}: sorry`,
      permanent,
      retryAfterMs: 3_000,
    });
  }
});

test("a server that is away, or hangs up, is worth another try", async () => {
  const url = await nowhere();
  await expect(runnable({ type: "tab-action", url, resolver: "pinchtab" }).run(click)).rejects.toMatchObject({
    name: "Error",
    message: `cannot resolve tab "tab-1": cannot reach ${url}: connect ECONNREFUSED ${new URL(url).host}`,
  });
  const { pinchTab, run } = await pinchTabWithTwo();
  pinchTab.answers.set("/instances/tabs", (response) => response.destroy());
  await expect(run(click)).rejects.toMatchObject({
    name: "Error",
    message: `cannot resolve tab "tab-1": no answer from ${pinchTab.url}: it closed the connection`,
  });
});

test("a server that takes too long is dropped, and worth another try", async () => {
  const { pinchTab, run, clock } = await pinchTabWithTwo();
  pinchTab.answers.set("/instances", (response) => response.writeHead(200).write("["));
  const failed = expect(run(click)).rejects.toMatchObject({
    name: "Error",
    message: 'cannot resolve tab "tab-1": the PinchTab server did not respond within 10000 ms',
  });
  await until(() => pinchTab.seen.length === 2);
  await clock.advance(10_000);
  await failed;
  await pinchTab.seen[1]?.dropped;
  expect(clock.pending).toBe(0);
});

test("does not go where the address guard forbids, for good", async () => {
  const { pinchTab } = await pinchTabWithTwo();
  const guard = new TargetGuard({ allow: [], clock: new ManualClock() });
  const { run } = runnable({ type: "tab-action", url: pinchTab.url, resolver: "pinchtab" }, { guard });
  const failed = run(click);
  await expect(failed).rejects.toMatchObject({ name: "PermanentError" });
  await expect(failed).rejects.toThrow(/^cannot resolve tab "tab-1": the URL must /);
  expect(pinchTab.seen).toEqual([]);
});

// ---------------------------------------------------------------------------------------------------- many at a time

test("callers that ask at the same time share one request", async () => {
  const { pinchTab, run } = await pinchTabWithTwo();
  pinchTab.openTab("tab-2", "inst_2");
  const tabs = Array.from({ length: 20 }, (_, index) => `tab-${1 + (index % 2)}`);
  const answers = await Promise.all(tabs.map((tabId) => run({ ...click, tabId })));
  expect(answers).toHaveLength(20);
  expect(lookups(pinchTab)).toBe(1);
});

test("many callers that ask for a missing tab share their lookups too", async () => {
  const { pinchTab, run } = await pinchTabWithTwo();
  const asked = Array.from({ length: 20 }, (_, index) => run({ ...click, tabId: `no-${index}` }));
  const outcomes = await Promise.allSettled(asked);
  expect(outcomes.every(({ status }) => status === "rejected")).toBe(true);
  // One for the first caller, and one that began after the others came; the same when the server must not use its cache.
  expect(lookups(pinchTab)).toBe(4);
});

test("a tab that was opened during the lookup is found all the same", async () => {
  const { pinchTab, run } = await pinchTabWithTwo();
  const answer = new Latch();
  pinchTab.answers.set("/instances/tabs", async (response) => {
    pinchTab.answers.clear();
    await answer.opened;
    json(response, 200, [{ id: "tab-1", instanceId: "inst_1" }]);
  });
  const first = run(click);
  await until(() => pinchTab.seen.length === 1);
  pinchTab.openTab("tab-2", "inst_2");
  const second = run({ ...click, tabId: "tab-2" });
  answer.open();
  expect(await Promise.all([first, second])).toEqual([
    { success: true, by: "inst_1" },
    { success: true, by: "inst_2" },
  ]);
  expect(lookups(pinchTab)).toBe(2);
});

test("a caller that stops waiting does not end the lookup of the others", async () => {
  const { pinchTab, run } = await pinchTabWithTwo();
  const answer = new Latch();
  pinchTab.answers.set("/instances", async (response) => {
    await answer.opened;
    json(response, 200, []);
  });
  const stop = new AbortController();
  const stopped = expect(run(click, stop.signal)).rejects.toThrow("stopped");
  const goingOn = expect(run(click)).rejects.toThrow('its instance "inst_1" is not in the list');
  await until(() => pinchTab.seen.length === 2);
  stop.abort(new Error("stopped"));
  await stopped;
  answer.open();
  await goingOn;
});

test("when the last one stops waiting the question is dropped, and the next one asks anew", async () => {
  const { pinchTab, run } = await pinchTabWithTwo();
  pinchTab.answers.set("/instances/tabs", hang);
  const stop = new AbortController();
  const stopped = [run(click, stop.signal), run(click, stop.signal)].map((ran) =>
    expect(ran).rejects.toThrow("stopped"),
  );
  await until(() => pinchTab.seen.length === 1);
  stop.abort(new Error("stopped"));
  pinchTab.answers.clear();
  expect(await run(click)).toEqual({ success: true, by: "inst_1" });
  await Promise.all(stopped);
  await pinchTab.seen[0]?.dropped;
});
