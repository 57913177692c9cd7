import { gzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { breakOff, endless, hang, json, PinchTab } from "../../test/support/pinchtab.ts";
import { runnable } from "../../test/support/run-executor.ts";
import type { Task } from "../model/task.ts";
import { TargetGuard } from "../outbound/target-guard.ts";
import { ManualClock } from "../testing/manual-clock.ts";
import { until } from "../testing/signals.ts";
import { VERSION } from "../version.ts";

const click = { kind: "action", action: "click", tabId: "tab-1" } as const;

/** A browser with one tab, and the executor that does its actions. */
async function browser(headers: Record<string, string> = {}) {
  const pinchTab = await PinchTab.start();
  const url = await pinchTab.startInstance("inst_1");
  pinchTab.openTab("tab-1", "inst_1");
  const executor = runnable({ type: "tab-action", url, headers });
  return { pinchTab, url, ...executor };
}

/** The body that a task is posted with. */
async function bodyOf(task: Partial<Task>): Promise<string> {
  const { pinchTab, run } = await browser();
  await run({ ...click, ...task });
  return pinchTab.seen[0]?.body ?? "";
}

test("posts the action to the tab, for its agent, and returns the response", async () => {
  const { pinchTab, run } = await browser({ Authorization: "Bearer secret" });
  const task = { ...click, agentId: "agent-crawl-01", ref: "e14", params: { text: "Alan Turing" } };
  expect(await run(task)).toEqual({ success: true, by: "inst_1" });
  expect(pinchTab.seen).toMatchObject([
    {
      method: "POST",
      path: "/tabs/tab-1/action",
      headers: {
        "content-type": "application/json",
        "x-agent-id": "agent-crawl-01",
        authorization: "Bearer secret",
      },
    },
  ]);
  expect(JSON.parse(pinchTab.seen[0]?.body ?? "")).toEqual({
    kind: "click",
    ref: "e14",
    text: "Alan Turing",
  });
});

test.each<[Partial<Task>, object]>([
  [{}, { kind: "click" }],
  [
    { ref: "e1", selector: "#a" },
    { kind: "click", ref: "e1", selector: "#a" },
  ],
  [
    { ref: "e1", selector: "#a", params: { ref: "e2", selector: "#b" } },
    { kind: "click", ref: "e1", selector: "#a" },
  ],
  [{ params: { ref: "e2", selector: "#b" } }, { kind: "click", ref: "e2", selector: "#b" }],
  [
    { ref: "", selector: "", params: { ref: "e2" } },
    { kind: "click", ref: "e2" },
  ],
  [{ params: { kind: "type", tabId: "other", x: [1, null] } }, { kind: "click", x: [1, null] }],
  [
    { params: { constructor: 1, toJSON: 2, hasOwnProperty: 3 } },
    { kind: "click", constructor: 1, toJSON: 2, hasOwnProperty: 3 },
  ],
])("of %j it posts %j", async (task, body) => {
  expect(JSON.parse(await bodyOf(task))).toEqual(body);
});

test("a parameter called __proto__ is one like any other", async () => {
  const params = JSON.parse('{"__proto__":{"kind":"type","ref":"e9"},"text":"x"}');
  expect(await bodyOf({ params })).toBe('{"kind":"click","__proto__":{"kind":"type","ref":"e9"},"text":"x"}');
});

test("says for whom it acts whatever its headers say, and sends JSON as JSON", async () => {
  const { pinchTab, run } = await browser({ "X-Agent-ID": "another", "Content-Type": "text/plain" });
  await run(click);
  expect(pinchTab.seen[0]?.headers).toMatchObject({
    "x-agent-id": "agent",
    "content-type": "application/json",
  });
});

test("says whose task it is, and who calls, in ASCII", async () => {
  const { pinchTab, run } = await browser({ "X-Rota-Tenant": "other" });
  await run({ ...click, agentId: "агент 🙂 100%" }, undefined, "ten_1");
  expect(pinchTab.seen[0]?.headers).toMatchObject({
    "x-agent-id": `${encodeURIComponent("агент")} ${encodeURIComponent("🙂")} 100%`,
    "x-rota-tenant": "ten_1",
    "user-agent": `rota/${VERSION}`,
  });
});

test.each([
  ["a/b?c#d e", "/tabs/a%2Fb%3Fc%23d%20e/action"],
  ["../../admin", "/tabs/..%2F..%2Fadmin/action"],
  ["%2e%2e", "/tabs/%252e%252e/action"],
  ["ü\u{1f600}", "/tabs/%C3%BC%F0%9F%98%80/action"],
  ["\ud800", "/tabs/%EF%BF%BD/action"],
  [" x\r\n", "/tabs/%20x%0D%0A/action"],
])("the tab %j is asked for at %s", async (tabId, path) => {
  const { pinchTab, run } = await browser();
  pinchTab.onAction = (response) => json(response, 200, "ok");
  expect(await run({ ...click, tabId })).toBe("ok");
  expect(pinchTab.seen.map((seen) => seen.path)).toEqual([path]);
});

test.each([
  ["http://HOST/", "/tabs/tab-1/action"],
  ["http://HOST///", "/tabs/tab-1/action"],
  [" http://HOST/a/b/ ", "/a/b/tabs/tab-1/action"],
])("the path is added to the URL %j", async (pattern, path) => {
  const { pinchTab, url } = await browser();
  pinchTab.onAction = (response) => json(response, 200, 1);
  await runnable({ type: "tab-action", url: pattern.replace("http://HOST", url) }).run(click);
  expect(pinchTab.seen[0]?.path).toBe(path);
});

test.each([{}, { tabId: "" }, { tabId: " \t" }])("without a tab (%j) it fails for good", async (tab) => {
  const { pinchTab, run } = await browser();
  const failed = expect(run({ kind: "action", action: "click", ...tab })).rejects;
  await failed.toMatchObject({ name: "PermanentError", message: "tabId is required for task execution" });
  expect(pinchTab.seen).toEqual([]);
});

test.each([".", ".."])("a tab called %j, which is a step in a URL, is refused", async (tabId) => {
  const { pinchTab, run } = await browser();
  await expect(run({ ...click, tabId })).rejects.toMatchObject({
    name: "PermanentError",
    message: `cannot resolve tab "${tabId}": a URL cannot name it`,
  });
  expect(pinchTab.seen).toEqual([]);
});

test.each<Partial<Task>>([
  { kind: "instruction", instruction: "x" },
  { kind: "message", message: "x" },
  { kind: "custom", payload: { action: "click", tabId: "tab-1" } },
])("a task that is no action (%j) fails for good", async (task) => {
  const { pinchTab, run } = await browser();
  await expect(run(task)).rejects.toMatchObject({
    name: "PermanentError",
    message: `a tab-action executor does tasks with an \`action\`; this one is of kind ${task.kind}`,
  });
  expect(pinchTab.seen).toEqual([]);
});

test.each([
  ["application/json", '{"a":1}', { a: 1 }],
  ["text/plain", '{"a":1}', { a: 1 }],
  ["application/json", "not json", "not json"],
  ["text/html", "<p>", "<p>"],
  ["application/json", "", ""],
])("a response of type %s, %j, becomes the result %j", async (type, body, result) => {
  const { pinchTab, run } = await browser();
  pinchTab.onAction = (response) => response.writeHead(200, { "content-type": type }).end(body);
  expect(await run(click)).toEqual(result);
});

test("a response without a content type is read as JSON if it is JSON", async () => {
  const { pinchTab, run } = await browser();
  pinchTab.onAction = (response) => response.writeHead(201).end('{"a":1}');
  expect(await run(click)).toEqual({ a: 1 });
});

test("a response of more than a mebibyte is cut and marked", async () => {
  const { pinchTab, run } = await browser();
  pinchTab.onAction = endless('{"a":1}'.repeat(10_000));
  expect(await run(click)).toMatchObject({ truncated: true, text: expect.stringMatching(/^\{"a":1\}\{/) });
  await pinchTab.seen[0]?.dropped;
});

test("a response that is too large once it is decompressed is cut and marked", async () => {
  const { pinchTab, run } = await browser();
  const bomb = gzipSync(Buffer.alloc(50_000_000, "x"));
  pinchTab.onAction = (response) => response.writeHead(200, { "content-encoding": "gzip" }).end(bomb);
  const { truncated, text } = (await run(click)) as { truncated: true; text: string };
  expect([truncated, text.slice(0, 3), text.length > 1_040_000, text.length < 1_048_576]).toEqual([
    true,
    "xxx",
    true,
    true,
  ]);
});

test.each([
  [400, true],
  [401, true],
  [403, true],
  [405, true],
  [410, true],
  [413, true],
  [422, true],
  [302, false],
  [408, false],
  [409, false],
  [429, false],
  [500, false],
  [503, false],
])("a response with status %i is a failure, for good: %s", async (status, permanent) => {
  const { pinchTab, run } = await browser();
  pinchTab.onAction = (response) => response.writeHead(status, { "retry-after": "7" }).end("sorry");
  await expect(run(click)).rejects.toMatchObject({
    message: `HTTP ${status}: sorry`,
    permanent,
    retryAfterMs: 7_000,
  });
  expect(pinchTab.seen).toHaveLength(1);
});

test("a tab that does not exist is a failure for good, after one request", async () => {
  const { pinchTab, run } = await browser();
  pinchTab.closeTab("tab-1");
  await expect(run(click)).rejects.toMatchObject({
    message: 'HTTP 404: {"error":"tab not found"}',
    permanent: true,
  });
  expect(pinchTab.seen).toHaveLength(1);
});

test("a failure quotes a kibibyte of the response", async () => {
  const { pinchTab, run } = await browser();
  pinchTab.onAction = (response) => response.writeHead(500).end("x".repeat(5_000));
  await expect(run(click)).rejects.toMatchObject({ message: `HTTP 500: ${"x".repeat(1_024)}…` });
});

test("a response that breaks off is a failure that is retried", async () => {
  const { pinchTab, url, run } = await browser();
  pinchTab.onAction = breakOff;
  await expect(run(click)).rejects.toMatchObject({
    name: "CallError",
    message: `the answer of ${url} broke off: it closed the connection`,
  });
});

test.each([
  ["before it is answered", hang],
  ["in the middle of the answer", (response) => response.writeHead(200).write("{")],
] satisfies [string, typeof hang][])("drops the request when its signal fires %s", async (_when, answer) => {
  const { pinchTab, run } = await browser();
  pinchTab.onAction = answer;
  const stop = new AbortController();
  const failed = expect(run(click, stop.signal)).rejects.toThrow("stopped");
  await until(() => pinchTab.seen.length === 1);
  stop.abort(new Error("stopped"));
  await failed;
  await pinchTab.seen[0]?.dropped;
});

test("sends nothing once its signal has fired", async () => {
  const { pinchTab, run } = await browser();
  await expect(run(click, AbortSignal.abort(new Error("stopped")))).rejects.toThrow("stopped");
  expect(pinchTab.seen).toEqual([]);
});

test("does not go where the address guard forbids, for good", async () => {
  const { pinchTab, url } = await browser();
  const guard = new TargetGuard({ allow: [], clock: new ManualClock() });
  const { run } = runnable({ type: "tab-action", url }, { guard });
  await expect(run(click)).rejects.toMatchObject({ name: "PermanentError" });
  expect(pinchTab.seen).toEqual([]);
});
