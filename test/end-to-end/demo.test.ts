import { expect, test } from "vitest";
import { ask } from "../support/http.ts";
import { eventually, runRota, startServer } from "./server-process.ts";

test("rota demo shows fairness, a retry, a pre-emption and a session, and says what to try next", async () => {
  const demo = runRota(["demo", "--port", "0", "--for", "14"]);
  expect(await demo.ended).toEqual({ code: 0, signal: null });
  const [first, ...lines] = demo.stdout().trim().split("\n");
  expect(first).toMatch(
    /^Rota is ready at http:\/\/127\.0\.0\.1:\d+: a demo in memory, dashboard at http:\/\/127\.0\.0\.1:\d+\/ui\/$/,
  );
  expect(lines.slice(0, 4)).toEqual([
    "Try in another terminal:",
    ...Array(3).fill(expect.stringMatching(/^ {2}\S/)),
  ]);
  expect(lines.slice(-5)).toEqual([
    "The demo has stopped, and its data is gone. Try next:",
    ...Array(4).fill(expect.stringMatching(/^ {2}\S/)),
  ]);
  const events = lines.slice(4, -5);
  for (const line of events) {
    expect(line).toMatch(/^\S+Z {2}(?:task\.[a-z]+ {2}tsk_\w+ {2}\w+|batch\.completed {2}bat_\w+)/);
  }
  const indexOf = (type: string, agent: string, from: "first" | "last" = "first") => {
    const fits = (line: string) => line.split("  ")[1] === type && line.split("  ")[3] === agent;
    return from === "first" ? events.findIndex(fits) : events.findLastIndex(fits);
  };
  expect(indexOf("task.preempted", "archivist")).toBeGreaterThan(-1);
  expect(indexOf("task.completed", "pager")).toBeGreaterThan(indexOf("task.preempted", "archivist"));
  expect(indexOf("task.retrying", "flaky")).toBeGreaterThan(-1);
  expect(indexOf("task.completed", "support")).toBeGreaterThan(-1);
  expect(indexOf("task.created", "reporter")).toBeGreaterThan(-1);
  expect(indexOf("task.completed", "translator")).toBeGreaterThan(-1);
  // The small agent submits last and is served before the greedy one has started all of its tasks.
  expect(indexOf("task.created", "small")).toBeGreaterThan(indexOf("task.created", "greedy", "last"));
  expect(indexOf("task.started", "small")).toBeGreaterThan(-1);
  expect(indexOf("task.started", "small")).toBeLessThan(indexOf("task.started", "greedy", "last"));
  expect(demo.stderr()).toBe("");
});

test("rota demo is a server like any other until it is stopped", async () => {
  const demo = runRota(["demo", "--port", "0"]);
  await eventually(() => demo.stdout().includes("task.completed"), "the first task");
  const url = /http:\/\/[\d.:]+\d/.exec(demo.stdout())?.[0] as string;
  expect((await ask(`${url}/health`)).body).toMatchObject({ status: "ok", state: "running" });
  demo.kill("SIGINT");
  expect(await demo.ended).toEqual({ code: 0, signal: null });
  expect(demo.stderr()).toBe("");
});

test("rota demo says when the requested port is taken", async () => {
  const { url } = await startServer();
  const demo = runRota(["demo", "--port", new URL(url).port]);
  expect(await demo.ended).toEqual({ code: 2, signal: null });
  expect(demo.stderr()).toMatch(/^error: port \d+ of 127\.0\.0\.1 is taken: /);
});

test.each([
  ["--port", "high"],
  ["--for", "ever"],
])("rota demo %s %s is refused", async (flag, value) => {
  const demo = runRota(["demo", flag, value]);
  expect(await demo.ended).toEqual({ code: 2, signal: null });
  expect(demo.stderr()).toMatch(new RegExp(`^error: ${flag} must be .*, not ${value}\n$`));
});
