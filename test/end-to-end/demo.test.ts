import { expect, test } from "vitest";
import { ask } from "../support/http.ts";
import { eventually, runRota, startServer } from "./server-process.ts";

test("rota demo serves, works and ends by itself", async () => {
  const demo = runRota(["demo", "--port", "0", "--for", "2"]);
  expect(await demo.ended).toEqual({ code: 0, signal: null });
  const [first, ...lines] = demo.stdout().trim().split("\n");
  expect(first).toMatch(
    /^Rota is ready at http:\/\/127\.0\.0\.1:\d+: a demo, kept in memory, dashboard at http:\/\/127\.0\.0\.1:\d+\/ui\/$/,
  );
  expect(lines.length).toBeGreaterThan(1);
  for (const line of lines) expect(line).toMatch(/^\S+Z {2}task\.[a-z]+ {2}tsk_\w+ {2}\w+/);
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
